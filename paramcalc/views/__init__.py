"""Views: a terminal, Markdown, CSV and JSON, and the explanation of each formula."""

"""Where a model comes from: a preset or a file."""

"""Audit: a model's ledger against the tensors that files hold."""

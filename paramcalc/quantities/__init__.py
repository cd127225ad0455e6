"""Quantities: each a fold over the ledger, in arithmetic that ints, arrays and symbols share."""

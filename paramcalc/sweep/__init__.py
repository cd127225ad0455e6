"""The sweep: the ledger's formulas over large grids, as arrays."""

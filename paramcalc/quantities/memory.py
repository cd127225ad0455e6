"""Memory: what a sequence leaves in the cache. Weight bytes are in ``deploy.formats``."""

from __future__ import annotations

from paramcalc.ledger import Ledger
from paramcalc.numbers import Num


def kv_elements(ledger: Ledger, n: Num) -> Num:
    """Return the cache elements after n tokens, windows and latents as they are kept."""
    return sum(c.elements(n) for c in ledger.caches)


def kv_bytes(ledger: Ledger, n: Num, batch: Num, bits: int) -> Num:
    """Return the cache bytes of ``batch`` sequences of n tokens at ``bits`` an element."""
    return batch * kv_elements(ledger, n) * bits // 8


def kv_bytes_next(ledger: Ledger, n: Num, bits: int) -> Num:
    """Return the bytes the next token adds to a cache that holds n tokens.

    At n = 0 this is the first token's cost; a sliding layer adds nothing once its window is full.
    """
    return (kv_elements(ledger, n + 1) - kv_elements(ledger, n)) * bits // 8

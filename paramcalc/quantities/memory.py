"""Memory: what a sequence leaves in the cache. Weight bytes are in ``paramcalc.formats``."""

from __future__ import annotations

from typing import NamedTuple

from paramcalc.ledger import Cache, CacheKind, Ledger
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


class CacheKindRow(NamedTuple):
    """One kind of cache: ``layers`` that keep it, its elements after n tokens, and what the first
    token and the next one add."""

    kind: CacheKind
    layers: Num
    elements: Num
    first: Num
    following: Num


def by_kind(ledger: Ledger, n: Num) -> list[CacheKindRow]:
    """Return the cache after n tokens by kind, in the order in which layers first keep one."""
    found: dict[CacheKind, CacheKindRow] = {}
    for layer in ledger.layers:
        own = [row for row in layer.rows if isinstance(row, Cache)]
        for kind in dict.fromkeys(row.kind for row in own):
            of_kind = [row for row in own if row.kind == kind]
            now, first, following = (
                layer.n_layers * sum(row.elements(length) for row in of_kind)
                for length in (n, 1, n + 1)
            )
            held = found.get(kind, CacheKindRow(kind, 0, 0, 0, 0))
            found[kind] = CacheKindRow(
                kind,
                held.layers + layer.n_layers,
                held.elements + now,
                held.first + first,
                held.following + following - now,
            )
    return list(found.values())


class CacheLayer(NamedTuple):
    """What one layer keeps after n tokens."""

    layer: int
    kind: CacheKind
    elements: Num


def by_layer(ledger: Ledger, n: Num) -> list[CacheLayer]:
    """Return the cache of every layer after n tokens, by kind; ints only."""
    rows = [
        CacheLayer(number, kind, sum(r.elements(n) for r in own if r.kind == kind))
        for layer in ledger.layers
        if (own := [row for row in layer.rows if isinstance(row, Cache)])
        for span in layer.ranges
        for number in range(*span)
        for kind in dict.fromkeys(row.kind for row in own)
    ]
    return sorted(rows, key=lambda row: row.layer)

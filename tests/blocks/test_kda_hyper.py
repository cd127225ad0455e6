"""Kimi's delta attention, hyper-connections, and entries for blocks of tokens."""

from __future__ import annotations

from paramcalc.blocks.hyper import HyperConnection, HyperHead
from paramcalc.blocks.kda import KimiDelta
from paramcalc.ledger import Cache, LayerRows, Ledger, Operation, Tensor
from paramcalc.quantities import flops
from paramcalc.sight import Compressed, Window


def _params(rows: object) -> int:
    return sum(row.params for row in rows if isinstance(row, Tensor))  # type: ignore[attr-defined]


def test_kimi_delta_by_hand() -> None:
    low = KimiDelta("mixer", 10, 3, 4, 2, True, (1, 1, 3, 1))
    plain = KimiDelta("mixer", 10, 3, 4, 2, False, (3,))
    shared = (
        4 * 10 * 12 + 3 * 12 * 2 + 12 + 3 + 3 * 10 + 4
    )  # q k v o, conv, shift, rates, beta, norm
    assert _params(low.rows()) == shared + 2 * (10 * 4 + 4 * 12)
    assert _params(plain.rows()) == shared + 2 * 10 * 12
    (rule,) = (row for row in low.rows() if isinstance(row, Operation))
    assert rule.flops_per_pair == 6 * 3 * 4 * 4
    state, conv = (row for row in low.rows() if isinstance(row, Cache))
    assert (state.elements(9), conv.elements(9)) == (3 * 4 * 4, 3 * 12 * 2)


def test_hyper_connections_by_hand() -> None:
    mixing, plain = (HyperConnection("attention.streams", 10, 4, mix) for mix in (True, False))
    assert _params(mixing.rows()) == 24 * 40 + 24 + 3
    assert _params(plain.rows()) == 8 * 40 + 8 + 2
    assert _params(HyperHead("streams", 10, 4).rows()) == 4 * 40 + 4 + 1
    (mix,) = (row for row in mixing.rows() if isinstance(row, Operation))
    assert mix.flops_per_pair == 2 * 4 * 4 * 10
    assert not any(isinstance(row, Operation) for row in plain.rows())


def test_crossover_of_attention_in_steps() -> None:
    def crossover(top_k: int | None, width: int) -> int | None:
        rows = (
            Tensor("ffn.up", "ffn", (width, 1)),
            Operation("near", "attention", 1, Window(5)),
            Operation("far", "attention", 3, Compressed(4, top_k)),
        )
        return flops.crossover(Ledger.of((), [LayerRows("", "", 1, ((0, 1, 1),), rows)]))

    for width in range(1, 40):
        reached = [n for n in range(1, 200) if min(n, 5) + 3 * (n // 4) >= 2 * width]
        assert crossover(None, width) == reached[0]
        few = [n for n in range(1, 200) if min(n, 5) + 3 * min(n // 4, 2) >= 2 * width]
        assert crossover(2, width) == (few[0] if few else None)

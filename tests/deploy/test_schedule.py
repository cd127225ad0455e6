"""Pipeline schedules against the papers' formulas."""

from __future__ import annotations

from fractions import Fraction

import pytest

import paramcalc
from paramcalc.deploy import schedule
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.schedule import Schedule
from paramcalc.errors import InputError
from paramcalc.quantities import params


def test_passes_in_flight() -> None:
    assert [Schedule().in_flight(i, 4, 8) for i in range(4)] == [4, 3, 2, 1]
    assert [Schedule().in_flight(i, 4, 2) for i in range(4)] == [2, 2, 2, 1]
    assert [Schedule("gpipe").in_flight(i, 4, 8) for i in range(4)] == [8, 8, 8, 8]


@pytest.mark.parametrize(("pp", "v"), [(4, 5), (8, 3), (2, 2), (12, 8)])
def test_interleaving_holds_so_many_layers_more(pp: int, v: int) -> None:
    """The first stage holds L (1 + (p - 1) / (p v)) layers (arXiv:2205.05198): in chunks of
    L / (p v) layers, p v + p - 1."""
    held = Schedule("interleaved", v).in_flight(0, pp, 8 * pp)
    assert Fraction(held, pp * v) == 1 + Fraction(pp - 1, pp * v)


def test_bubble() -> None:
    assert Schedule().bubble(8, 32) == Fraction(7, 32)
    assert Schedule("gpipe").bubble(8, 32) == Fraction(7, 32)
    assert Schedule("interleaved", 4).bubble(8, 32) == Fraction(7, 128)
    assert Schedule().bubble(1, 1) == 0


def test_chunks_of_a_stage_stand_pp_apart() -> None:
    ledger = paramcalc.load("llama3-8b").ledger
    parts = schedule.stages(Schedule("interleaved", 2), ledger, Layout(pp=4))
    assert [[kind.ranges for kind in part.layers] for part in parts] == [
        [((i * 4, i * 4 + 4, 1),), (((i + 4) * 4, (i + 4) * 4 + 4, 1),)] for i in range(4)
    ]
    assert sum(params.total(part) for part in parts) == 8_030_261_248
    assert [bool(part.outer) for part in parts] == [True, False, False, True]


@pytest.mark.parametrize(
    ("which", "pp", "microbatches", "message"),
    [
        (Schedule("1f1b", 2), 4, 8, "virtual = 2: only with --schedule interleaved"),
        (Schedule("interleaved", 1), 4, 8, "virtual = 1: needs 2 chunks and 2 stages"),
        (Schedule("interleaved", 2), 1, 8, "virtual = 2: needs 2 chunks and 2 stages"),
        (Schedule("interleaved", 3), 4, 8, "virtual = 3: pp x virtual = 12 must divide 32 layers"),
        (Schedule("interleaved", 2), 4, 6, "global_batch: 6 microbatches must be a multiple"),
        (Schedule("zb"), 4, 8, "schedule = zb: must be one of gpipe"),  # type: ignore[arg-type]
    ],
)
def test_bad_input(which: Schedule, pp: int, microbatches: int, message: str) -> None:
    with pytest.raises(InputError) as caught:
        schedule.check(which, paramcalc.load("llama3-8b").ledger, pp, microbatches)
    assert str(caught.value).startswith(message)

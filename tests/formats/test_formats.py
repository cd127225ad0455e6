"""Bytes of each format against sums over the shapes, written out."""

from __future__ import annotations

from math import ceil

import pytest

import paramcalc
from tests.conftest import preset

Q, KV, FF, D = 4096, 1024, 14336, 4096
MATRICES = [(Q, D), (KV, D), (KV, D), (D, Q), (FF, D), (FF, D), (D, FF)]
REST = 8_030_261_248 - 32 * sum(a * b for a, b in MATRICES)


@pytest.mark.parametrize(
    ("dtype", "count"),
    [
        ("fp32", 4 * 8_030_261_248),
        ("bf16", 2 * 8_030_261_248),
        ("FP16", 2 * 8_030_261_248),
        ("fp8", 2 * REST + 32 * sum(a * b + 4 for a, b in MATRICES)),
        ("int8", 2 * REST + 32 * sum(a * b + 2 * a for a, b in MATRICES)),
        ("int4", 2 * REST + 32 * sum(a * b // 2 + 2 * a * ceil(b / 128) for a, b in MATRICES)),
    ],
)
def test_llama3_8b(dtype: str, count: int) -> None:
    assert preset("llama3-8b").memory.weight_bytes(dtype) == count


def test_a_row_that_is_no_whole_number_of_groups_rounds_up() -> None:
    model = paramcalc.load({"d": 130, "L": 1, "H": 1, "V": 1, "d_ff": 3, "norm": "none"})
    rest = 2 * 2 * 130
    assert model.memory.weight_bytes("int4") == rest + sum(
        ceil(a * b / 2) + 2 * a * ceil(b / 128) for a, b in [(130, 130)] * 4 + [(3, 130), (130, 3)]
    )


def test_buffers_are_stored() -> None:
    assert preset("deepseek-v3").memory.weight_bytes("bf16") == 2 * 671_026_419_200


def test_unknown_format() -> None:
    with pytest.raises(paramcalc.InputError, match=r"dtype = int5: unknown format \(did you mean"):
        preset("gpt2").memory.weight_bytes("int5")

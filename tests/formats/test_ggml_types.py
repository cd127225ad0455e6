"""Blocks of GGML's types against the bits per weight that their authors state, and the library."""

from __future__ import annotations

from fractions import Fraction

import pytest

from paramcalc.formats.ggml_types import TYPES

# comments of ggml/src/ggml-common.h and tools/quantize/quantize.cpp, as text
STATED = {
    "Q1_0": "1.125",
    "Q2_0": "2.25",
    "Q2_K": "2.625",
    "Q3_K": "3.4375",
    "Q4_K": "4.5",
    "Q5_K": "5.5",
    "Q6_K": "6.5625",
    "IQ1_S": "1.5625",
    "IQ1_M": "1.75",
    "IQ2_XXS": "2.0625",
    "IQ2_XS": "2.3125",
    "IQ2_S": "2.5625",
    "IQ3_XXS": "3.0625",
    "IQ3_S": "3.4375",
    "IQ4_NL": "4.5",
    "IQ4_XS": "4.25",
    "TQ1_0": "1.6875",
    "TQ2_0": "2.0625",
}


@pytest.mark.parametrize(("name", "bits"), STATED.items())
def test_bits_per_weight(name: str, bits: str) -> None:
    assert Fraction(8 * TYPES[name].n_bytes, TYPES[name].weights) == Fraction(bits)


def test_the_library_has_the_same_blocks() -> None:
    constants = pytest.importorskip("gguf.constants")
    theirs = {t.name: size for t, size in constants.GGML_QUANT_SIZES.items()}
    ours = {t.name: (t.weights, t.n_bytes) for t in TYPES.values()}
    assert {name: theirs[name] for name in ours if name in theirs} == {
        name: size for name, size in ours.items() if name in theirs
    }
    assert set(ours) - set(theirs) <= {"Q2_0"}  # newer than the library


def test_a_row_is_whole_blocks() -> None:
    assert TYPES["Q4_K"].row_bytes(4096) == 16 * 144
    assert TYPES["Q4_K"].fits(4096)
    assert not TYPES["Q4_K"].fits(4544)  # Falcon 7B

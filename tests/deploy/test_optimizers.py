"""States of optimizers, by the rules of their implementations, written out by hand."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.deploy import optimizers
from paramcalc.deploy.optimizers import state_bytes
from paramcalc.errors import InputError
from paramcalc.ledger import Tensor

LLAMA3_8B = 8_030_261_248
EMBEDDING = 128_256 * 4096
NORMS = 65 * 4096


def of(name: str, model: str = "llama3-8b") -> int:
    kind = optimizers.find(name)
    return sum(state_bytes(t, kind) for t in paramcalc.load(model).ledger.tensors)


@pytest.mark.parametrize(
    ("name", "each"),
    [("adamw", 8), ("adamw-bf16", 4), ("lion", 4), ("sgd", 0), ("sgd-momentum", 4)],
)
def test_bytes_a_parameter(name: str, each: int) -> None:
    assert of(name) == each * LLAMA3_8B


def test_8_bit_keeps_maxima_of_256_and_embeddings_in_fp32() -> None:
    """Norms of 4,096 elements are just large enough: bitsandbytes keeps fewer in FP32."""
    rest = LLAMA3_8B - EMBEDDING
    assert of("adamw-8bit") == 8 * EMBEDDING + 2 * rest + 2 * 4 * rest // 256


def test_8_bit_leaves_small_tensors_alone() -> None:
    kind = optimizers.find("AdamW8bit")
    assert state_bytes(Tensor("small", "norm", (4095,)), kind) == 8 * 4095
    assert state_bytes(Tensor("odd", "ffn", (4097,), copies=3), kind) == 3 * (2 * 4097 + 8 * 17)


def test_adafactor_keeps_rows_and_columns() -> None:
    layer = (2 * 4096) + 2 * (1024 + 4096) + (2 * 4096) + 3 * (14336 + 4096) + 2 * 4096
    assert of("adafactor") == 4 * (32 * layer + 2 * (128_256 + 4096) + 4096)


def test_adafactor_of_more_dimensions() -> None:
    """Sums over the last one and over the one before it."""
    kind = optimizers.find("adafactor")
    assert state_bytes(Tensor("conv", "mixer", (6, 5, 4)), kind) == 4 * (6 * 5 + 6 * 4)


def test_muon_is_adamw_outside_the_hidden_matrices() -> None:
    outside = 2 * EMBEDDING + NORMS
    assert of("muon") == 8 * outside + 4 * (LLAMA3_8B - outside)


def test_a_tied_head_has_no_state_of_its_own() -> None:
    assert of("adamw", "gpt2") == 8 * 124_439_808


def test_buffers_have_none() -> None:
    assert state_bytes(Tensor("b", "router", (64,), use="buffer"), optimizers.find("adamw")) == 0


def test_an_unknown_optimizer() -> None:
    with pytest.raises(InputError, match=r"optimizer = adamx: unknown \(did you mean adamw\?\)"):
        optimizers.find("adamx")

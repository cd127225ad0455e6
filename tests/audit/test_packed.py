"""Packed weights at their true shape, as each released format stores them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paramcalc.audit.packed import unpacked
from paramcalc.sources.contents import read_file
from tests.audit.files import write_arrays


def packed(kind: str) -> dict[str, np.ndarray[Any, Any]]:
    """A matrix (96, 64) as each format stores it."""
    name = "model.layers.0.mlp.up_proj"
    zeros = np.zeros
    return {
        "gptq": {
            f"{name}.qweight": zeros((8, 96), np.int32),
            f"{name}.qzeros": zeros((2, 12), np.int32),
            f"{name}.scales": zeros((2, 96), np.float16),
            f"{name}.g_idx": zeros((64,), np.int32),
        },
        "awq": {
            f"{name}.qweight": zeros((64, 12), np.int32),
            f"{name}.qzeros": zeros((2, 12), np.int32),
            f"{name}.scales": zeros((2, 96), np.float16),
        },
        "compressed": {
            f"{name}.weight_packed": zeros((96, 8), np.int32),
            f"{name}.weight_scale": zeros((96, 2), np.float16),
            f"{name}.weight_shape": np.array([96, 64]),
        },
        "int8": {
            f"{name}.weight": zeros((96, 64), np.int8),
            f"{name}.SCB": zeros((96,), np.float32),
        },
        "nvfp4": {
            f"{name}.weight": zeros((96, 32), np.uint8),
            f"{name}.weight_scale": zeros((96, 4), np.uint8),
            f"{name}.weight_scale_2": zeros((1,), np.float32),
        },
        "mxfp4": {
            f"{name}.weight_blocks": zeros((96, 2, 16), np.uint8),
            f"{name}.weight_scales": zeros((96, 2), np.uint8),
        },
        "nf4": {
            f"{name}.weight": zeros((3072, 1), np.uint8),
            f"{name}.weight.absmax": zeros((96,), np.float32),
            f"{name}.weight.quant_state.bitsandbytes__nf4": np.frombuffer(
                json.dumps({"shape": [96, 64]}).encode(), np.uint8
            ),
        },
    }[kind]


@pytest.mark.parametrize("kind", ["gptq", "awq", "compressed", "int8", "nvfp4", "mxfp4", "nf4"])
def test_packed_tensors_have_their_true_shape(kind: str, tmp_path: Path) -> None:
    arrays = packed(kind)
    (held,) = unpacked(read_file(write_arrays(tmp_path / "m.safetensors", arrays)))
    assert held.shape == (96, 64)
    assert held.name == "model.layers.0.mlp.up_proj.weight"
    assert held.n_bytes == sum(array.nbytes for array in arrays.values())
    assert held.packed


def test_what_states_a_shape_is_not_trusted(tmp_path: Path) -> None:
    name = "model.layers.0.mlp.up_proj"
    for shape in ([-5, 2**62], [0, 3], [2**50, 2]):
        arrays = packed("compressed") | {f"{name}.weight_shape": np.array(shape)}
        found = unpacked(read_file(write_arrays(tmp_path / "m.safetensors", arrays)))
        assert sum(held.elements for held in found) < 10_000
    deep = np.frombuffer(b"[" * 4000, np.uint8)
    arrays = packed("nf4") | {f"{name}.weight.quant_state.bitsandbytes__nf4": deep}
    (held,) = unpacked(read_file(write_arrays(tmp_path / "m.safetensors", arrays)))
    assert held.elements == 6144

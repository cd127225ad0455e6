"""Bytes of each format against sums over the shapes, written out, and against released files."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
import pytest

import paramcalc
from paramcalc import formats
from paramcalc.formats.schemes import SCHEMES, SPELLINGS
from paramcalc.ledger import Tensor
from paramcalc.symbols import lift, symbol
from tests.conftest import preset

Q, KV, FF, D = 4096, 1024, 14336, 4096
MATRICES = [(Q, D), (KV, D), (KV, D), (D, Q), (FF, D), (FF, D), (D, FF)]
LAYERS = 32
REST = 8_030_261_248 - LAYERS * sum(a * b for a, b in MATRICES)
GROUPS = [(a * b // 2, a * b // 128, b) for a, b in MATRICES]
"""Of each matrix: bytes of 4-bit weights, groups of 128, inputs."""


@pytest.mark.parametrize(
    ("dtype", "count"),
    [
        ("fp32", 4 * 8_030_261_248),
        ("bf16", 2 * 8_030_261_248),
        ("FP16", 2 * 8_030_261_248),
        ("fp8", 2 * REST + LAYERS * sum(a * b + 4 for a, b in MATRICES)),
        ("fp8-channel", 2 * REST + LAYERS * sum(a * b + 2 * a for a, b in MATRICES)),
        ("fp8-block", 2 * REST + LAYERS * sum(a * b + 4 * a * b // 128**2 for a, b in MATRICES)),
        ("int8", 2 * REST + LAYERS * sum(a * b + 2 * a for a, b in MATRICES)),
        ("int4", 2 * REST + LAYERS * sum(w + 2 * g for w, g, _ in GROUPS)),
        ("int4-g32", 2 * REST + LAYERS * sum(w + 2 * 4 * g for w, g, _ in GROUPS)),
        ("awq", 2 * REST + LAYERS * sum(w + 2 * g + g // 2 for w, g, _ in GROUPS)),
        ("awq-g64", 2 * REST + LAYERS * sum(w + 2 * 2 * g + g for w, g, _ in GROUPS)),
        ("gptq", 2 * REST + LAYERS * sum(w + 2 * g + g // 2 + 4 * i for w, g, i in GROUPS)),
        ("gptq-g128", 2 * REST + LAYERS * sum(w + 2 * g + g // 2 + 4 * i for w, g, i in GROUPS)),
        ("gptq-g32", 2 * REST + LAYERS * sum(w + 8 * g + 2 * g + 4 * i for w, g, i in GROUPS)),
        ("nf4", 2 * REST + LAYERS * sum(w + 4 * 2 * g + 64 for w, g, _ in GROUPS)),
        (
            "nf4-dq",
            2 * REST
            + LAYERS * sum(w + 2 * g + 4 * 2 * g // 256 + 64 + 1024 + 4 for w, g, _ in GROUPS),
        ),
        ("mxfp4", 2 * REST + LAYERS * sum(w + 4 * g for w, g, _ in GROUPS)),
        ("mxfp4-all", 2 * REST + LAYERS * sum(w + 4 * g for w, g, _ in GROUPS)),
        ("mxfp8", 2 * REST + LAYERS * sum(2 * w + 4 * g for w, g, _ in GROUPS)),
        ("nvfp4", 2 * REST + LAYERS * sum(w + 8 * g + 8 for w, g, _ in GROUPS)),
    ],
)
def test_llama3_8b(dtype: str, count: int) -> None:
    assert preset("llama3-8b").memory.weight_bytes(dtype) == count


def test_every_format_is_written_out_above() -> None:
    marks = test_llama3_8b.pytestmark  # type: ignore[attr-defined]
    assert set(SCHEMES) == {d.lower() for d, _ in marks[0].args[1] if "-g" not in d}


# Bytes of the tensors in released files, and what those keep beside the format: AutoGPTQ wrote a
# bias of zeros in 16 bits for every matrix; compressed-tensors keeps a shape as two int64, and
# where columns were ordered by activation an int32 for each input.
ZERO_BIASES_8B = 2 * LAYERS * sum(a for a, _ in MATRICES)
SHAPES_70B = 80 * 7 * 2 * 8
ORDER_70B = 80 * 4 * (6 * 8192 + 28672)


@pytest.mark.parametrize(
    ("name", "dtype", "beside", "published"),
    [
        # openai/gpt-oss-20b and -120b: metadata.total_size of model.safetensors.index.json
        ("gpt-oss-20b", "mxfp4", 0, 13_761_264_768),
        ("gpt-oss-120b", "mxfp4", 0, 65_248_815_744),
        # sums of data_offsets: RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8-dynamic, -quantized.w4a16
        ("llama3.1-8b", "fp8-dynamic", 0, 9_083_953_152),
        ("llama3.1-8b", "gptq", ZERO_BIASES_8B, 5_735_587_840),
        # RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16, nvidia/Llama-3.3-70B-Instruct-FP4
        ("llama3-70b", "w4a16", SHAPES_70B + ORDER_70B, 39_525_311_232),
        ("llama3-70b", "nvfp4", 0, 42_709_045_632),
    ],
)
def test_released_files(name: str, dtype: str, beside: int, published: int) -> None:
    assert preset(name).memory.weight_bytes(dtype) + beside == published


@pytest.mark.parametrize(("dtype", "sizes"), [("awq", (4.68, 1.05)), ("gptq", (4.97, 0.764))])
def test_released_files_in_gb(dtype: str, sizes: tuple[float, float]) -> None:
    """The pages of hugging-quants/Meta-Llama-3.1-8B-Instruct-AWQ-INT4 and -GPTQ-INT4."""
    count = preset("llama3.1-8b").memory.weight_bytes(dtype)
    assert abs(count / 1e9 - sum(sizes)) < 0.0055  # as printed, both rounded


def test_deepseek_v3_as_shipped() -> None:
    """The 163 files of deepseek-ai/DeepSeek-V3 have 688,586,727,753 bytes, headers included.

    Beside the rule, they keep ``eh_proj`` of the prediction layer in BF16 and the routing
    corrections in FP32. The rest is headers: a name, a dtype, a shape and offsets a tensor.
    """
    config = {
        "model_type": "deepseek_v3",
        "vocab_size": 129280,
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_nextn_predict_layers": 1,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "n_shared_experts": 1,
        "n_routed_experts": 256,
        "routed_scaling_factor": 2.5,
        "kv_lora_rank": 512,
        "q_lora_rank": 1536,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "qk_nope_head_dim": 128,
        "n_group": 8,
        "topk_group": 4,
        "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
        "max_position_embeddings": 163840,
        "tie_word_embeddings": False,
    }
    model = paramcalc.load(config).with_(count_mtp=True)
    d, moe, layers = 7168, 2048, 62
    eh_proj = (2 - 1) * d * 2 * d - 4 * (d // 128) * (2 * d // 128)
    corrections = (4 - 2) * 256 * (layers - 3)
    tensors = model.memory.weight_bytes("fp8-block") + eh_proj + corrections
    matrices = 5 * layers + 3 * 3 + 3 * 257 * (layers - 3)
    headers = 688_586_727_753 - tensors
    assert 110 < Fraction(headers, 2 * matrices) < 140
    assert moe * d % 128**2 == 0


@pytest.mark.parametrize(
    ("dtype", "bits", "beside"),
    [
        ("nf4", 4 + Fraction(32, 64), 64),
        # QLoRA section 3: 8 / 64 + 32 / (64 * 256) = 0.127 bits a parameter
        ("nf4-dq", 4 + Fraction(8, 64) + Fraction(32, 64 * 256), 1092),
        ("mxfp4-all", Fraction("4.25"), 0),  # OCP MX v1.0: 32 x 4 bits and a scale of 8
        ("mxfp8", Fraction("8.25"), 0),
        ("nvfp4", Fraction("4.5"), 8),  # NVIDIA: 16 x 4 bits and a scale of 8
    ],
)
def test_published_bits_a_weight(dtype: str, bits: Fraction, beside: int) -> None:
    tensor = Tensor("ffn.up", "ffn", (4096, 4096))
    count = formats.tensor_bytes(tensor, formats.find(dtype))
    assert Fraction(8 * (count - beside), 4096 * 4096) == bits


def test_rounded_bits_of_double_quantization() -> None:
    assert round(Fraction(8, 64) + Fraction(32, 64 * 256), 3) == Fraction("0.127")


def test_what_is_no_whole_number_of_blocks_rounds_up() -> None:
    model = paramcalc.load({"d": 130, "L": 1, "H": 1, "V": 1, "d_ff": 3, "norm": "none"})
    rest = 2 * 2 * 130
    shapes = [(130, 130)] * 4 + [(3, 130), (130, 3)]
    by_hand = {
        "int4": sum(ceil(a * b / 2) + 2 * a * ceil(b / 128) for a, b in shapes),
        "awq": sum(
            ceil(a * b / 2) + 2 * a * ceil(b / 128) + ceil(a * ceil(b / 128) / 2) for a, b in shapes
        ),
        "fp8-block": sum(a * b + 4 * ceil(a / 128) * ceil(b / 128) for a, b in shapes),
        "nf4-dq": sum(
            ceil(a * b / 2) + ceil(a * b / 64) + 4 * ceil(ceil(a * b / 64) / 256) + 1092
            for a, b in shapes
        ),
        "nvfp4": sum(ceil(a * b / 2) + a * ceil(b / 16) + 8 for a, b in shapes),
    }
    for dtype, count in by_hand.items():
        assert model.memory.weight_bytes(dtype) == rest + count


def test_buffers_are_stored() -> None:
    assert preset("deepseek-v3").memory.weight_bytes("bf16") == 2 * 671_026_419_200


def test_mxfp4_takes_experts_only_where_there_are_some() -> None:
    """Mixtral: 8 experts of three matrices in each of 32 layers; attention beside them."""
    model = preset("mixtral-8x7b")
    experts = 32 * 8 * 3 * 14336 * 4096
    attention = 32 * (2 * 4096 * 4096 + 2 * 1024 * 4096)
    rest = model.params.total - experts - attention
    assert model.memory.weight_bytes("mxfp4") == experts * 17 // 32 + 2 * (attention + rest)
    assert model.memory.weight_bytes("mxfp4-all") == (experts + attention) * 17 // 32 + 2 * rest


def test_an_unsettled_format_is_not_guessed() -> None:
    found = formats.find("mxfp4")
    with pytest.raises(ValueError, match="settled"):
        formats.tensor_bytes(Tensor("ffn.up", "ffn", (64, 64)), found)
    ledger = preset("llama3-8b").ledger
    fixed = formats.settled(found, ledger)
    assert (fixed.covers, formats.settled(fixed, ledger)) == ("layers", fixed)
    assert formats.settled(found, preset("gpt-oss-20b").ledger).covers == "experts"


def test_other_spellings() -> None:
    assert set(SPELLINGS.values()) <= set(SCHEMES)
    assert not set(SPELLINGS) & set(SCHEMES)
    names = {
        "torch.bfloat16": "bf16",
        "half": "fp16",
        "E4M3": "fp8",
        "fp8_block": "fp8-block",
        "w4a16": "int4",
        "w4a16-g64": "int4-g64",
        "int4-awq": "awq",
        "AWQ-G64": "awq-g64",
        "gptq-g128": "gptq",
        "nf4-double": "nf4-dq",
    }
    for name, plain in names.items():
        assert formats.find(name).name == plain


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("int5", r"dtype = int5: unknown format \(did you mean int"),
        ("nf5-g32", "dtype = nf5-g32: unknown format"),
        ("gptq-g0", "dtype = gptq-g0: a group has 1 to 65,536 weights; write gptq-g128"),
        ("awq-g99999999", "dtype = awq-g99999999: a group has 1 to 65,536 weights"),
        ("nf4-g32", "dtype = nf4-g32: the group size of nf4 is fixed; write nf4, or take one of"),
        ("mxfp4-g16", "dtype = mxfp4-g16: the group size of mxfp4 is fixed"),
        ("gptq-g", "dtype = gptq-g: unknown format"),
        ("", "dtype = : unknown format; take one of fp32"),
    ],
)
def test_unknown_format(name: str, says: str) -> None:
    with pytest.raises(paramcalc.InputError, match=says) as error:
        preset("gpt2").memory.weight_bytes(name)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "bits"),
    [("fp32", 32), ("bf16", 16), ("half", 16), ("fp8_e5m2", 8), ("int8", 8), ("int4", 4)],
)
def test_a_cache_of_llama3_8b(name: str, bits: int) -> None:
    """K and V of 8 heads of 128 in 32 layers."""
    assert preset("llama3-8b").memory.kv_bytes_per_token(dtype=name) == 32 * 2 * 8 * 128 * bits // 8


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nf4", "kv_dtype = nf4: is a format of weights; take one of fp32, bf16, fp16"),
        ("w4a16-g32", "kv_dtype = w4a16-g32: is a format of weights"),
        ("mxfp4", "kv_dtype = mxfp4: is a format of weights"),
        ("fp9", r"kv_dtype = fp9: unknown format \(did you mean fp8"),
    ],
)
def test_no_format_of_a_cache(name: str, says: str) -> None:
    with pytest.raises(paramcalc.InputError, match=says):
        preset("gpt2").memory.kv_bytes(dtype=name)


HOPPER = {"fp32", "bf16", "fp16", "fp8", "int8"}
BLACKWELL = HOPPER | {"fp4"}
AMPERE = HOPPER - {"fp8"}


@pytest.mark.parametrize(
    ("name", "on", "kind"),
    [
        ("bf16", HOPPER, "bf16"),
        ("fp8", HOPPER, "fp8"),
        ("fp8-block", AMPERE, "bf16"),
        ("int8", AMPERE, "int8"),
        ("awq", BLACKWELL, "bf16"),
        ("gptq-g32", {"fp16"}, "fp16"),
        ("nf4", None, "bf16"),
        ("mxfp4", HOPPER, "bf16"),
        ("mxfp4", BLACKWELL, "fp4"),
        ("nvfp4", None, "fp4"),
    ],
)
def test_compute_format(name: str, on: set[str] | None, kind: str) -> None:
    assert formats.compute_format(formats.find(name), on) == kind


def test_hardware_without_the_format() -> None:
    with pytest.raises(paramcalc.InputError, match="dtype = int8: needs int8, and the hardware"):
        formats.compute_format(formats.find("int8"), ["fp16"])


@pytest.mark.parametrize("dtype", [*SCHEMES, "awq-g96"])
def test_arrays_and_symbols_give_the_same_bytes(dtype: str) -> None:
    """Rows and columns on two axes, so that what is not broadcast shows."""
    rows, columns = np.array([[3], [130], [4096]]), np.array([7, 128, 2880, 9000])
    fmt = formats.find(dtype)._replace(covers="layers")
    found = formats.tensor_bytes(Tensor("ffn.up", "ffn", (rows, columns), copies=5), fmt)
    for i, out in enumerate(rows[:, 0].tolist()):
        for j, into in enumerate(columns.tolist()):
            exact = formats.tensor_bytes(Tensor("ffn.up", "ffn", (out, into), copies=5), fmt)
            assert found[i, j] == exact
            shape = symbol("d_ff", out), symbol("d", into)
            named = formats.tensor_bytes(Tensor("ffn.up", "ffn", shape, copies=5), fmt)
            assert lift(named).value == exact

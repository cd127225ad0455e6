"""Rules of llama-quantize that the published mixtures of Llama do not show."""

from __future__ import annotations

import pytest

import paramcalc
from paramcalc.formats import llama_cpp
from paramcalc.formats.gguf_layout import layout_of
from tests.conftest import preset


def types(model: str, file_type: str, imatrix: bool = False) -> dict[str, dict[str, int]]:
    """Of each tensor of a layer (by its short name): the layers that have a type."""
    found: dict[str, dict[str, int]] = {}
    ledger, layout = preset(model).ledger, layout_of(preset=model)
    for t in llama_cpp.tensor_types(ledger, file_type, layout, imatrix=imatrix):
        name = t.name.removeprefix("blk.*.").removesuffix(".weight")
        found.setdefault(name, {})[t.type] = t.layers
    return found


def test_a_tied_embedding_takes_the_type_of_the_head() -> None:
    assert types("gemma2-9b", "Q4_K_M")["token_embd"] == {"Q6_K": 1}
    assert types("llama3-8b", "Q4_K_M")["token_embd"] == {"Q4_K": 1}
    assert types("gemma2-9b", "IQ2_M")["token_embd"] == {"Q5_K": 1}
    assert types("llama3-8b", "TQ1_0")["token_embd"] == {"Q4_K": 1}


def test_eight_experts() -> None:
    found = types("mixtral-8x7b", "Q4_K_M")
    assert found["attn_v"] == found["attn_k"] == {"Q8_0": 32}
    assert found["attn_output"] == {"Q5_K": 32}
    assert found["attn_q"] == {"Q4_K": 32}
    assert found["ffn_down_exps"] == {"Q6_K": 16, "Q4_K": 16}
    assert found["ffn_gate_inp"] == {"F32": 32}
    lowest = types("mixtral-8x7b", "IQ2_XXS")
    assert lowest["attn_k"] == lowest["attn_v"] == {"Q4_K": 32}
    assert lowest["attn_output"] == {"Q5_K": 32}
    assert lowest["ffn_down_exps"] == {"Q2_K": 4, "IQ2_XXS": 28}


def test_falcon() -> None:
    found = types("falcon-40b", "Q4_K_M")  # 60 layers, width 8192
    assert found["output"] == {"Q8_0": 1}
    # the first 60 // 16 layers; 7, 8 at the ends and (52 - 7) // 3 between, less those three
    assert found["ffn_down"] == {"Q6_K": 3, "Q5_K": 7 + 8 + 15 - 3, "Q4_K": 30}
    assert found["attn_qkv"] == {"Q5_K": 60}
    assert types("falcon-40b", "Q3_K_M")["attn_output"] == {"Q3_K": 60}


def test_rows_that_are_not_whole_blocks() -> None:
    found = types("qwen2.5-0.5b", "Q4_K_M")  # width 896 = 3.5 x 256; d_ff 4864 = 19 x 256
    assert found["token_embd"] == {"Q8_0": 1}
    assert found["attn_q"] == {"Q5_0": 24}
    assert found["attn_v"] == {"Q8_0": 12, "Q5_0": 12}
    assert found["ffn_down"] == {"Q6_K": 12, "Q4_K": 12}
    assert types("qwen2.5-0.5b", "IQ4_XS")["attn_q"] == {"IQ4_NL": 24}
    assert types("qwen2.5-0.5b", "Q2_K")["ffn_up"] == {"Q4_0": 24}


def test_no_type_for_a_row() -> None:
    model = paramcalc.load({"d": 48, "L": 1, "H": 1, "V": 64, "d_ff": 64})
    with pytest.raises(
        paramcalc.InputError,
        match=r"dtype = q4_0: a row of 48 in .* is not whole blocks of 32, .* take f16",
    ):
        llama_cpp.weight_bytes(model.ledger, "Q4_0")


def test_rows_that_no_type_of_that_kind_fits_stay_in_f16() -> None:
    model = paramcalc.load({"d": 256, "L": 1, "H": 2, "V": 64, "d_ff": 48})
    found = llama_cpp.tensor_types(model.ledger, "Q4_K_M")
    assert {t.type for t in found if t.name == "blk.*.ffn_down.weight"} == {"F16"}


def test_70b() -> None:
    assert types("llama3-70b", "Q4_K_M")["attn_v"] == {"Q6_K": 40, "Q5_K": 40}
    assert types("qwen1.5-72b", "Q3_K_S")["attn_v"] == {"Q5_K": 80}  # though its heads are alone
    assert types("llama1-65b", "Q3_K_S")["attn_v"] == {"Q3_K": 80}


def test_an_importance_matrix() -> None:
    assert types("llama3-8b", "IQ4_XS")["ffn_down"] == {"Q5_K": 4, "IQ4_XS": 28}
    assert types("llama3-8b", "IQ4_XS", True)["ffn_down"] == {"IQ4_XS": 32}
    assert types("llama3-8b", "Q4_0", True)["ffn_down"] == {"Q4_1": 4, "Q4_0": 28}
    assert types("llama3-8b", "IQ3_XXS")["ffn_down"] == {"IQ3_XXS": 32}  # it needs one


def test_single_precision_holds_everything() -> None:
    model = preset("gpt2")
    assert llama_cpp.weight_bytes(model.ledger, "F32", layout_of("gpt2")) == 4 * 124_439_808


def test_values_that_few_heads_share() -> None:
    assert types("llama2-7b", "Q2_K")["attn_v"] == {"Q3_K": 32}
    assert types("llama3-8b", "Q2_K")["attn_v"] == {"Q4_K": 32}
    assert types("llama2-7b", "IQ2_S")["attn_v"] == {"IQ3_S": 32}


def test_mxfp4_is_for_experts() -> None:
    found = types("gpt-oss-20b", "MXFP4_MOE")
    assert found["ffn_gate_exps"] == {"MXFP4": 24}
    assert found["token_embd"] == found["output"] == {"Q8_0": 1}
    assert found["attn_q"] == {"Q8_0": 24}
    assert found["attn_sinks"] == {"F32": 24}

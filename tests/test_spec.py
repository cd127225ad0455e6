"""The schema: defaults, short names, sizes, and each rule with its one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import paramcalc
from paramcalc.build import default_d_ff
from paramcalc.sections import EncoderSpec, LatentSpec, LayerGroup
from paramcalc.spec import ModelSpec

CARD: dict[str, Any] = {"d_model": 512, "n_layers": 2, "n_heads": 8, "vocab_size": 100}
MLA = {
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}


def total(**fields: Any) -> int:
    return paramcalc.load({**CARD, **fields}).params.total


def test_short_names_are_the_same_fields() -> None:
    short = ModelSpec.model_validate(
        {"d": 512, "L": 2, "H": 8, "H_kv": 4, "V": 100, "E": 8, "k": 2, "n": 64}
    )
    full = ModelSpec(
        d_model=512,
        n_layers=2,
        n_heads=8,
        n_kv_heads=4,
        vocab_size=100,
        n_experts=8,
        top_k=2,
        context=64,
    )
    assert short == full


def test_sizes_may_be_typed() -> None:
    spec = ModelSpec.model_validate(
        {**CARD, "d_model": "4k", "context": "4k", "vocab_size": "1.5M"}
    )
    assert (spec.d_model, spec.context, spec.vocab_size) == (4_000, 4_096, 1_500_000)


def test_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        ModelSpec(**CARD).d_model = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("d", "gated", "multiple", "width"),
    [
        (4096, True, 256, 11_008),
        (5120, True, 256, 13_824),
        (8192, True, 256, 22_016),
        (6656, True, 256, 17_920),
        (512, False, 256, 2_048),
        (3, True, 1, 8),
    ],
)
def test_default_d_ff(d: int, gated: bool, multiple: int, width: int) -> None:
    assert default_d_ff(d, gated, multiple) == width  # the four gated widths are Llama 1's


def test_ff_multiple_of() -> None:
    narrow = total(d_model=4096, n_heads=32, gated_ffn=True, ff_multiple_of=1)
    assert total(d_model=4096, n_heads=32, gated_ffn=True) - narrow == 2 * 3 * 4096 * (
        11_008 - 10_923
    )


def test_defaults_by_hand() -> None:
    # two tables, then a layer of 12 d^2 and two norms, and the final norm
    assert total() == 2 * 100 * 512 + 2 * (12 * 512 * 512 + 2 * 512) + 512


@pytest.mark.parametrize(
    ("fields", "more"),
    [
        ({"tie_embeddings": True}, -100 * 512),
        ({"gated_ffn": True, "d_ff": 2048}, 2 * 512 * 2048),
        ({"attention_bias": True}, 2 * 4 * 512),
        ({"attention_bias": ["q", "k", "v"]}, 2 * 3 * 512),
        ({"attention_bias": "o"}, 2 * 512),
        ({"ffn_bias": True}, 2 * (2048 + 512)),
        ({"qk_norm": "head"}, 2 * 2 * 64),
        ({"qk_norm": "full"}, 2 * 2 * 512),
        ({"qk_norm": "per_head", "n_kv_heads": 2}, 2 * (512 + 128) - 2 * 2 * 512 * 384),
        ({"sinks": True}, 2 * 8),
        ({"norm": "layer"}, 5 * 512),
        ({"norm": "none"}, -5 * 512),
        ({"norms_per_layer": 4}, 2 * 2 * 512),
        ({"final_norm": False}, -512),
        ({"embedding_norm": True}, 512),
        ({"positions": "learned", "context": 64}, 64 * 512),
        ({"positions": "learned", "n_positions": 64, "position_offset": 2}, 66 * 512),
        ({"n_token_types": 2}, 2 * 512),
        ({"head_bias": True}, 100),
        ({"head": "none"}, -100 * 512),
        ({"ffn": False}, -2 * (8 * 512 * 512 + 512)),
        ({"head_dim": 128}, 2 * 4 * 512 * 512),
        ({"v_head_dim": 128}, 2 * 2 * 512 * 512),
        ({"relative_buckets": 32}, 32 * 8),
        ({"window": 16}, 0),
        ({"chunk": 16}, 0),
        ({"share_layers": True}, -(12 * 512 * 512 + 2 * 512)),
        ({"causal": False, "pooler": True}, 512 * 512 + 512),
        ({"d_embedding": 64}, -2 * 100 * 448 + 2 * 512 * 64),
        ({"n_experts": 4, "top_k": 1}, 2 * (3 * 8 * 512 * 512 + 4 * 512)),
        ({"n_experts": 4, "top_k": 1, "router_bias": True}, 2 * (3 * 8 * 512 * 512 + 4 * 513)),
        ({"n_experts": 4, "top_k": 1, "router_correction": "parameter"},
         2 * (3 * 8 * 512 * 512 + 4 * 513)),
        ({"n_experts": 4, "top_k": 1, "router_correction": "buffer"},
         2 * (3 * 8 * 512 * 512 + 4 * 512)),
        ({"n_experts": 4, "top_k": 1, "n_shared_experts": 2},
         2 * (5 * 8 * 512 * 512 + 4 * 512)),
        ({"n_experts": 4, "top_k": 1, "d_shared": 64, "shared_gate": True},
         2 * (3 * 8 * 512 * 512 + 2 * 64 * 512 + 5 * 512)),
        ({"n_experts": 4, "top_k": 1, "d_expert": 512}, 2 * 4 * 512),
        ({"n_experts": 4, "top_k": 1, "n_dense_layers": 1}, 3 * 8 * 512 * 512 + 4 * 512),
        ({"layers": [{"repeat": 1, "ffn": False}, {}]}, -(8 * 512 * 512 + 512)),
        ({"encoder": {"n_layers": 1}},
         12 * 512 * 512 + 2 * 512 + 512 + 2 * (4 * 512 * 512 + 512)),
    ],
)  # fmt: skip
def test_each_field_by_hand(fields: dict[str, Any], more: int) -> None:
    assert total(**fields) - total() == more


def test_gpt2_mode_turns_on_biases_norm_biases_and_positions() -> None:
    layer = 4 * 512 + (2048 + 512) + 2 * 512
    assert total(gpt2=True, context=64) - total() == 2 * layer + 512 + 64 * 512


def test_mla_by_hand() -> None:
    d, heads = 512, 8
    attention = d * heads * 192 + d * 576 + 512 + 512 * heads * 256 + heads * 128 * d
    assert total(mla=MLA) - total() == 2 * (attention - 4 * d * d)


def test_patterns_count_layers_at_any_depth() -> None:
    for depth in range(1, 14):
        pattern = [{"ffn": False}, {"ffn": False}, {}]
        model = paramcalc.load({**CARD, "n_layers": depth, "layers": [{"pattern": pattern}]})
        kinds = {k.name: k.n_layers for k in model.params.by_kind}
        assert kinds["decoder dense"] == sum(i % 3 == 2 for i in range(depth))
        assert kinds["decoder attention-only"] == sum(i % 3 != 2 for i in range(depth))
        assert [n for _, n, _ in model.params.by_layer] == list(range(depth))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"n_heads": 0}, "n_heads = 0: must be at least 1; raise it"),
    ({"n_heads": -8}, "n_heads = -8: must be at least 1; raise it"),
    ({"d_model": 512.5}, "d_model = 512.5: must be a whole number; write it as 4096 or 8k"),
    ({"d_model": True}, "d_model = True: must be a whole number; write it as 4096 or 8k"),
    ({"d_model": "8.0001k"}, "d_model: '8.0001k' is not a whole number"),
    ({"d_model": "9" * 50}, f"d_model: '{'9' * 50}' is too large to be a size"),
    ({"n_layers": 10**30}, f"n_layers = {10**30}: must be at most 100,000; lower it"),
    ({"n_heads": 7}, "n_heads = 7: must divide d_model = 512; take one of 4, 8, or give head_dim"),
    ({"n_kv_heads": 3}, "n_kv_heads = 3: must divide n_heads = 8; take one of 2, 4"),
    ({"n_experts": 4}, "n_experts = 4: a router needs to know how many work on a token; give"),
    ({"n_experts": 4, "top_k": 5}, "top_k = 5: cannot exceed n_experts = 4; take 1 to 4"),
    ({"d_modle": 1}, "d_modle: unknown field (did you mean d_model?)"),
    ({"zzz": 1}, "zzz: unknown field; paramcalc show --help lists the card"),
    ({"layers": [{"windw": 1}]}, "layers.0.windw: unknown field (did you mean window?)"),
    ({"layers": []}, "layers = []: must be a list of sections; write - {...}"),
    ({"layers": [3]}, "layers.0 = 3: must be a section of fields; write field: value lines"),
    ({"layers": [{"repeat": 3}]}, "n_layers = 2: the groups under layers repeat 3 in all"),
    ({"layers": [{}, {}]}, "layers = 2 groups without repeat: only one group can take"),
    ({"n_dense_layers": 3}, "n_dense_layers = 3: there are 2 layers; lower it"),
    ({"n_dense_layers": 1, "layers": [{}]}, "n_dense_layers = 1: layers are already spelled"),
    ({"gpt2": True}, "positions = learned: a table of positions needs its length; give context"),
    ({"window": 4, "chunk": 4}, "window = 4: a layer is either windowed or chunked"),
    (
        {"mla": {"kv_lora_rank": 4}},
        "mla.qk_nope_head_dim, qk_rope_head_dim, v_head_dim: are required; add qk_nope_head_dim",
    ),
    ({"layers": [{"pattern": [{"repeat": 501}]}]}, "layers.0.pattern = 501 layers: a pattern"),
    ({"layers": [{}] * 501}, "layers = 501 sections: at most 500 are read; use repeat"),
    ({"mla": MLA, "window": 4}, "window = 4: has no meaning with latent attention (mla)"),
    ({"mla": {**MLA, "index_n_heads": 4}}, "mla.index_n_heads = 4: an indexer has three sizes"),
    ({"encoder": {}}, "encoder.n_layers: is required; add n_layers"),
    ({"encoder": {"n_layers": 2}, "causal": False}, "causal = false: an encoder-decoder's"),
    ({"encoder": {"n_layers": 2, "n_heads": 7}}, "encoder.n_heads = 7: must divide d_model"),
    ({"pooler": True}, "pooler = true: belongs to an encoder; set causal: false"),
    ({"share_layers": True, "layers": [{"repeat": 1}, {"ffn": False}]}, "share_layers = true"),
    (
        {"layers": [{"repeat": 1, "chunk": 4}, {"chunk": 8}]},
        "layers.1.chunk = 8: chunks of 4 stand in other layers; use one size of chunk in a model",
    ),
    ({"d": 3}, "d_model = 3: stands twice, once under a short name; keep one of them"),
    ({"norm": "batch"}, "norm = batch: must be one of 'rms', 'layer' or 'none'; change it"),
    ({"attention_bias": "qx"}, "attention_bias = qx: must be letters of qkvo; write [q, k, v]"),
    ({"tie_embeddings": "yes"}, "tie_embeddings = yes: must be true or false; write true or false"),
    ({"about": {"source": 3}}, "about.source = 3: must be text; change it"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "line"), BAD)
def test_one_line_for_each_broken_rule(fields: dict[str, Any], line: str) -> None:
    with pytest.raises(paramcalc.SpecError) as caught:
        paramcalc.load({**CARD, **fields})
    message = str(caught.value)
    assert message.startswith(f"fields: {line}")
    assert "\n" not in message


def test_a_misspelt_field_comes_before_the_missing_one() -> None:
    with pytest.raises(
        paramcalc.SpecError, match=r"n_layer: unknown field \(did you mean n_layers"
    ):
        paramcalc.load({"d_model": 512, "n_layer": 2, "n_heads": 8, "vocab_size": 100})


def test_a_repeat_inside_a_pattern_is_the_same_as_spelling_it_out() -> None:
    short = {**CARD, "n_layers": 9, "layers": [{"pattern": [{"ffn": False, "repeat": 3}, {}]}]}
    long = {**short, "layers": [{"pattern": [{"ffn": False}] * 3 + [{}]}]}
    a, b = paramcalc.load(short), paramcalc.load(long)
    assert a.params.by_layer == b.params.by_layer
    assert [k.n_layers for k in a.params.by_kind] == [7, 2]


def test_a_field_that_is_missing() -> None:
    with pytest.raises(paramcalc.SpecError, match="n_heads: is required; add n_heads"):
        paramcalc.load({"d_model": 512, "n_layers": 2, "vocab_size": 100})


def test_every_field_is_in_the_docs() -> None:
    text = (Path(__file__).parent.parent / "docs" / "fields.md").read_text(encoding="utf-8")
    for kind in (ModelSpec, LayerGroup, EncoderSpec, LatentSpec):
        for field in kind.model_fields:
            assert f"`{field}`" in text, field

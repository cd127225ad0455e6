"""Random valid shapes."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st


@st.composite
def specs(draw: st.DrawFn, *, plain: bool = False) -> dict[str, Any]:
    """Fields of a valid ModelSpec; ``plain`` draws the card only, without spelled structure."""
    kv = draw(st.integers(1, 4))
    heads = kv * draw(st.integers(1, 4))
    layers = draw(st.integers(1, 12))
    fields: dict[str, Any] = {
        "d_model": heads * draw(st.integers(1, 32)),
        "n_layers": layers,
        "n_heads": heads,
        "n_kv_heads": kv,
        "vocab_size": draw(st.integers(1, 999)),
        "context": draw(st.integers(1, 999)),
        "gated_ffn": draw(st.booleans()),
        "gpt2": draw(st.booleans()),
        "tie_embeddings": draw(st.booleans()),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "d_ff": st.integers(1, 99),
        "head_dim": st.integers(1, 64),
    }
    if draw(st.booleans()):
        fields["n_experts"] = draw(st.integers(1, 8))
        fields["top_k"] = draw(st.integers(1, fields["n_experts"]))
        optional |= {
            "d_expert": st.integers(1, 99),
            "n_shared_experts": st.integers(0, 3),
            "shared_gate": st.booleans(),
            "router_correction": st.sampled_from(["none", "parameter", "buffer"]),
        }
    if not plain:
        optional |= {
            "v_head_dim": st.integers(1, 64),
            "attention_bias": st.sampled_from([True, False, ["q", "k", "v"], ["o"]]),
            "qk_norm": st.sampled_from(["none", "head", "per_head", "full"]),
            "sinks": st.booleans(),
            "ffn_bias": st.booleans(),
            "norm": st.sampled_from(["rms", "layer", "none"]),
            "norms_per_layer": st.integers(0, 7),
            "d_embedding": st.integers(1, 64),
            "n_token_types": st.integers(1, 3),
            "relative_buckets": st.integers(1, 32),
            "encoder": st.fixed_dictionaries(
                {"n_layers": st.integers(1, 5)},
                optional={"gated_ffn": st.booleans(), "d_ff": st.just(9)},
            ),
            "layers": _groups(layers, heads),
        }
    for name, strategy in optional.items():
        if draw(st.booleans()):
            fields[name] = draw(strategy)
    return fields


def _groups(layers: int, heads: int) -> st.SearchStrategy[list[dict[str, Any]]]:
    kind = st.sampled_from(
        [
            {},
            {"window": 7},
            {"chunk": 5},
            {"n_experts": 0},
            {"ffn": False},
            {"gated_ffn": True},
            {"n_heads": heads * 2, "head_dim": 3},
            {"n_kv_heads": 1},
        ]
    )
    first = st.fixed_dictionaries({"repeat": st.integers(1, layers)})
    rest = st.fixed_dictionaries({"pattern": st.lists(kind, min_size=1, max_size=4)})
    return st.tuples(first, rest).map(list)

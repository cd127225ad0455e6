"""Gemma 3n (ai.google.dev/gemma/docs/gemma-3n): a small vector of each token's own for every layer
(per-layer embeddings), several streams of which a layer updates one and predicts the others (AltUp,
Baykal et al. 2023), a low-rank path beside each layer (LAuReL, arXiv:2411.07501), and last layers
that reuse the keys and values of the last layer of their kind before them."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.nested import inside
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Operation, Tensor
from paramcalc.sight import Causal, Sight, State, Window

PER_LAYER = {
    "per_layer.embedding": "model.embed_tokens_per_layer",
    "per_layer.projection": "model.per_layer_model_projection",
    "per_layer.norm": "model.per_layer_projection_norm",
    "per_layer.gate": "per_layer_input_gate",
    "per_layer.up": "per_layer_projection",
    "per_layer.post_norm": "post_per_layer_input_norm",
}
_NAMES = (
    LLAMA
    | PER_LAYER
    | {
        "norm3": "pre_feedforward_layernorm",
        "norm4": "post_feedforward_layernorm",
        "altup.in": "model.altup_projections.{i}",
        "altup.out": "model.altup_unembed_projections.{i}",
        "altup.scale": "altup.correct_output_scale !",
        "altup.correct": "altup.correction_coefs",
        "altup.predict": "altup.prediction_coefs",
        "altup.router": "altup.modality_router",
        "altup.norm": "altup.router_norm",
        "laurel.down": "laurel.linear_left",
        "laurel.up": "laurel.linear_right",
        "laurel.norm": "laurel.post_laurel_norm",
    }
)

TYPES = {
    "gemma3n_text": dict(
        vocab_size=262400,
        hidden_size=2048,
        intermediate_size=None,
        num_hidden_layers=35,
        num_attention_heads=8,
        num_key_value_heads=2,
        head_dim=256,
        max_position_embeddings=32768,
        tie_word_embeddings=True,
        attention_bias=False,
        sliding_window=512,
        layer_types=None,
        vocab_size_per_layer_input=262144,
        hidden_size_per_layer_input=256,
        altup_num_inputs=4,
        num_kv_shared_layers=15,
        laurel_rank=64,
    ),
}

WRAPS = {
    "gemma3n": {"as": "gemma3n_text"},
}


def NAMES(c: Config) -> Names:
    """The text model stands one step further in beside its towers."""
    return inside(_NAMES) if c.outer.get("model_type") == "gemma3n" else _NAMES


def read(c: Config) -> dict[str, Any]:
    """Every fifth layer sees all positions, the others a window."""
    # What is sparse is an activation; which stream is active and how it is scaled stores nothing.
    c.strict = True
    c.ignore("activation_sparsity_pattern", "altup_active_idx", "altup_correct_scale")
    n = c.num_hidden_layers
    widths = c.per_layer("intermediate_size", n, c.get("intermediate_size", 16384))
    kinds = types_of(c, 5)
    windows = c.windows(lambda i: (i + 1) % 5 != 0)
    first_shared = owners(c, kinds)
    side = (_altup(c), _laurel(c), per_layer_rows(c))
    rows: Layers = []
    for i, window in enumerate(windows):
        layer: dict[str, Any] = {"blocks": side, **window}
        if widths[i] != widths[0]:
            layer["d_ff"] = widths[i]
        if i >= first_shared:
            sight = Window(window["window"]) if window else Causal()
            layer["label"] = f"{kinds[i].removesuffix('_attention')}-reusing"
            layer |= {"attention": False, "blocks": (reusing(c, c.head_dim, sight), *side)}
        rows.append(layer)
    return c.card(
        d_ff=widths[0] if widths else None,
        gated_ffn=True,
        attention_bias=c.attention_bias,
        qk_norm="head",
        norms_per_layer=4,
        outer=(per_layer_outer(c), _streams(c)),
        **stack(rows),
    )


def types_of(c: Config, period: int) -> list[str]:
    """Return the kind of each layer: by ``layer_types``, else full in every ``period``-th."""
    n = c.num_hidden_layers
    words = ("sliding_attention", "full_attention")
    if c.layer_types is None:
        return [words[(i + 1) % period == 0] for i in range(n)]
    among = {word: word for word in words}
    return [c.choose("layer_types", kind, among) for kind in c.per_layer("layer_types", n)]


def owners(c: Config, kinds: list[str]) -> int:
    """Return how many first layers keep keys and values of their own.

    Raises ``ConfigError`` where a later layer would find none of its kind.
    """
    n, shared = len(kinds), c.num_kv_shared_layers
    if shared == 0:
        return n
    if shared > n or set(kinds[: n - shared]) != set(kinds):
        c.fail(
            "num_kv_shared_layers", shared, "must leave a layer of each kind to share", "lower it"
        )
    return int(n - shared)


def reusing(c: Config, head_dim: int, sight: Sight) -> Attention:
    """Return attention to an earlier layer's keys and values: Q and O, and no cache."""
    return Attention(
        "attention",
        c.hidden_size,
        c.num_attention_heads,
        c.num_key_value_heads,
        head_dim,
        head_dim,
        sight,
        "qo" if c.attention_bias else "",
        "head",
        parts="qo",
    )


def per_layer_outer(c: Config) -> Rows:
    """Return the table of per-layer embeddings, one row a token for all layers together, and what
    the token's usual embedding adds to it."""
    width = c.num_hidden_layers * c.hidden_size_per_layer_input
    return Rows(
        (
            Tensor(
                "per_layer.embedding",
                "embedding",
                (c.vocab_size_per_layer_input, width),
                "lookup",
                "vocab",
            ),
            *linear("per_layer.projection", "embedding", width, c.hidden_size),
            *Norm("per_layer.norm", (c.hidden_size_per_layer_input,), False).rows(),
        )
    )


def per_layer_rows(c: Config) -> Rows:
    """Return how a layer takes its own vector of the token in."""
    d, own = c.hidden_size, c.hidden_size_per_layer_input
    return Rows(
        (
            *linear("per_layer.gate", "residual", own, d),
            *linear("per_layer.up", "residual", d, own),
            *Norm("per_layer.post_norm", (d,), False).rows(),
        )
    )


def _streams(c: Config) -> Rows:
    """Into the streams and out of them: a matrix each way for all but the first."""
    d, n = c.hidden_size, c.altup_num_inputs - 1
    ways = ("altup.in", "altup.out") if n > 0 else ()
    return Rows(tuple(t for way in ways for t in linear(way, "residual", d, d, copies=n, active=n)))


def _altup(c: Config) -> Rows:
    """Predict the streams from each other and correct them by what the layer found: coefficients
    from a router that runs twice, and one (streams x streams) product a channel of each token."""
    d, n = c.hidden_size, c.altup_num_inputs
    router = Tensor("altup.router", "residual", (n, d), runs=2)
    return Rows(
        (
            Tensor("altup.scale", "residual", (d,), "scale"),
            *linear("altup.correct", "residual", n, n),
            *linear("altup.predict", "residual", n * n, n),
            router,
            *Norm("altup.norm", (d,), False).rows(),
            Operation("altup.mix", "residual", 2 * d * n * n, State()),
        )
    )


def _laurel(c: Config) -> Rows:
    """The low-rank path."""
    d, rank = c.hidden_size, c.laurel_rank
    return Rows(
        (
            *linear("laurel.down", "residual", rank, d),
            *linear("laurel.up", "residual", d, rank),
            *Norm("laurel.norm", (d,), False).rows(),
        )
    )

"""xLSTM 7B (arXiv:2503.13427): matrix memories of a few wide heads instead of attention, with input
and forget gates a head, then a gated network."""

from __future__ import annotations

from typing import Any

from paramcalc import rules
from paramcalc.blocks import Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.stacks import layers
from paramcalc.ledger import Cache, Operation
from paramcalc.sight import State

_NAMES = {
    "layers": "backbone.blocks",
    "embedding": "backbone.embeddings",
    "final_norm": "backbone.out_norm",
    "head": "lm_head",
    "norm1": "norm_mlstm",
    "norm2": "norm_ffn",
    "mixer.q": "mlstm_layer.q",
    "mixer.k": "mlstm_layer.k",
    "mixer.v": "mlstm_layer.v",
    "mixer.gate": "mlstm_layer.ogate_preact",
    "mixer.input": "mlstm_layer.igate_preact",
    "mixer.forget": "mlstm_layer.fgate_preact",
    "mixer.norm": "mlstm_layer.multihead_norm",
    "mixer.o": "mlstm_layer.out_proj",
    "ffn.gate": "ffn.proj_up_gate",
    "ffn.up": "ffn.proj_up",
    "ffn.down": "ffn.proj_down",
}
_WIDE = dict.fromkeys(("mixer.q", "mixer.k", "mixer.v", "mixer.gate"), "mlstm_layer.qkv_opreact")
_FUSED = _WIDE | {
    "mixer.input": "mlstm_layer.ifgate_preact",
    "mixer.forget": "mlstm_layer.ifgate_preact",
    "ffn.gate": "ffn.proj_up_gate_z",
    "ffn.up": "ffn.proj_up_gate_z",
}

TYPES: dict[str, dict[str, Any]] = {
    "xlstm": dict(
        vocab_size=50304,
        hidden_size=4096,
        embedding_dim=None,
        num_hidden_layers=32,
        num_blocks=None,
        num_heads=8,
        use_bias=False,
        qk_dim_factor=0.5,
        v_dim_factor=1.0,
        ffn_proj_factor=2.667,
        ffn_round_up_to_multiple_of=64,
        weight_mode="single",
    ),
}


def NAMES(c: Config) -> Names:
    """With ``weight_mode`` fused, what reads the same input is one matrix."""
    return _NAMES | _FUSED if c.weight_mode == "fused" else _NAMES


def read(c: Config) -> dict[str, Any]:
    """Widths are factors of the stream's, the network's rounded up. The class never ties."""
    c.strict = True
    c.ignore("tie_word_embeddings")
    c.ignore("add_out_norm", "norm_reduction_force_float32", "return_last_states", "chunk_size")
    c.ignore("max_inference_chunksize", "head_dim")
    c.choose("weight_mode", c.weight_mode, {"single": 1, "fused": 2})
    d, step = c.hidden_size, c.size("ffn_round_up_to_multiple_of")
    if c.get("embedding_dim", d) != d:
        c.fail("embedding_dim", c.embedding_dim, f"must be hidden_size = {d}")
    n = c.size("num_blocks", c.num_hidden_layers)
    if n > rules.MOST_LAYERS:
        c.fail("num_blocks", n, f"must be at most {rules.MOST_LAYERS:,}", "lower it")
    layer = dict(norm_bias=c.use_bias, norms_per_layer=2, blocks=(mixer(c),))
    return c.card(
        n_layers=n,
        n_heads=None,
        tie_embeddings=False,
        attention=False,
        d_ff=int((d * c.factor("ffn_proj_factor") + step - 1) // step * step),
        gated_ffn=True,
        ffn_bias=c.use_bias,
        layers=layers([layer] * n),
    )


def mixer(c: Config) -> Rows:
    """Return the matrix memory: keys times values summed up a head, and the sum of keys beside it.

    A token costs 4 FLOPs an element of both: 2 to write, 2 to read. The cache holds them and each
    head's greatest gate.
    """
    d, heads, bias = c.hidden_size, c.num_heads, c.use_bias
    keys, values = (int(d * c.factor(f"{part}_dim_factor")) for part in ("qk", "v"))
    for key, wide in (("qk_dim_factor", keys), ("v_dim_factor", values)):
        if heads < 1 or wide < 1 or wide % heads:
            c.fail(key, getattr(c, key), f"num_heads = {heads} must divide the width of {wide}")
    state = keys * values // heads + keys
    parts = (("q", keys), ("k", keys), ("v", values), ("gate", values))
    return Rows(
        (
            *(
                row
                for part, wide in parts
                for row in linear(f"mixer.{part}", "mixer", wide, d, bias=bias, shard="column")
            ),
            *linear("mixer.input", "mixer", heads, d, bias=True, shard="column"),
            *linear("mixer.forget", "mixer", heads, d, bias=True, shard="column"),
            *Norm("mixer.norm", (values,), bias).rows(),
            *linear("mixer.o", "mixer", d, values, bias=bias, shard="row"),
            Operation("mixer.memory", "mixer", 4 * state, State()),
            Cache("mixer.state", state + heads, State(), of="state"),
        )
    )

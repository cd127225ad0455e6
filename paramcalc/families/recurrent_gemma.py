"""RecurrentGemma (arXiv:2404.07839), Griffin's architecture (arXiv:2402.19427): two layers of three
have a gated linear recurrence, the third attends within a window."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Cache, Operation, Tensor
from paramcalc.sight import State

NAMES = LLAMA | {
    "final_norm": "model.final_norm",
    "norm1": "temporal_pre_norm",
    "norm2": "channel_pre_norm",
    "attention.q": "temporal_block.q_proj",
    "attention.k": "temporal_block.k_proj",
    "attention.v": "temporal_block.v_proj",
    "attention.o": "temporal_block.o_proj",
    "mixer.x": "temporal_block.linear_x",
    "mixer.y": "temporal_block.linear_y",
    "mixer.out": "temporal_block.linear_out",
    "mixer.conv": "temporal_block.conv_1d",
    "mixer.rates": "temporal_block.rg_lru.recurrent_param !",
    "mixer.input_gate": "temporal_block.rg_lru.input_gate_weight !",
    "mixer.input_gate.bias": "temporal_block.rg_lru.input_gate_bias !",
    "mixer.recurrent_gate": "temporal_block.rg_lru.recurrent_gate_weight !",
    "mixer.recurrent_gate.bias": "temporal_block.rg_lru.recurrent_gate_bias !",
    "ffn.gate": "mlp_block.gate_proj",
    "ffn.up": "mlp_block.up_proj",
    "ffn.down": "mlp_block.down_proj",
}

TYPES: dict[str, dict[str, Any]] = {
    "recurrent_gemma": dict(
        num_hidden_layers=26,
        vocab_size=256000,
        hidden_size=2560,
        intermediate_size=7680,
        num_attention_heads=10,
        num_key_value_heads=None,
        head_dim=None,
        lru_width=None,
        attention_window_size=2048,
        conv1d_width=4,
        block_types=None,
        attention_bias=False,
        tie_word_embeddings=True,
    ),
}

KEYS = {"attention_window_size": ("sliding_window",)}


def read(c: Config) -> dict[str, Any]:
    """The stated network width counts gate and input together; every matrix of it has a bias."""
    c.strict = True
    recurring = dict(label="recurrent", attention=False, norms_per_layer=2, blocks=(mixer(c),))
    attending = dict(label="attention", window=c.attention_window_size)
    n = c.num_hidden_layers
    period = c.get("block_types", ("recurrent", "recurrent", "attention"))
    if not isinstance(period, list | tuple) or not period:
        c.fail("block_types", period, "must be a list of recurrent and attention")
    among = {"recurrent": recurring, "attention": attending}
    kinds = [c.choose("block_types", kind, among) for kind in period]
    every: Layers = [kinds[i % len(kinds)] for i in range(n)]
    c.ignore("layers_block_type", "layer_types", "final_w_init_variance_scale")
    return c.card(
        d_ff=c.intermediate_size // 2,
        gated_ffn=True,
        ffn_bias=True,
        attention_bias="qkvo" if c.attention_bias else "o",
        **stack(every),
    )


def mixer(c: Config) -> Rows:
    """Return the recurrent block: two branches, a convolution, and a linear unit whose gates come
    from one small matrix a head. A token costs 2 FLOPs a channel of the state."""
    d, heads, kernel = c.hidden_size, c.num_attention_heads, c.conv1d_width
    wide = c.size("lru_width", d)
    if heads < 1 or wide % heads:
        c.fail("lru_width", wide, f"num_attention_heads = {heads} must divide it")
    part = wide // heads
    gates = ("input_gate", "recurrent_gate")
    return Rows(
        (
            *linear("mixer.y", "mixer", wide, d, bias=True, shard="column"),
            *linear("mixer.x", "mixer", wide, d, bias=True, shard="column"),
            *linear("mixer.out", "mixer", d, wide, bias=True, shard="row"),
            Tensor("mixer.conv", "mixer", (wide, 1, kernel), "conv", "column"),
            Tensor("mixer.conv.bias", "mixer", (wide,), "bias", "column"),
            Tensor("mixer.rates", "mixer", (wide,), "scale", "column"),
            *(
                Tensor(f"mixer.{x}", "mixer", (heads, part, part), "matmul", "column")
                for x in gates
            ),
            *(Tensor(f"mixer.{x}.bias", "mixer", (heads, part), "bias", "column") for x in gates),
            Operation("mixer.recurrence", "mixer", 2 * wide, State()),
            Cache("mixer.state", wide, State(), of="state"),
            Cache("mixer.conv_state", wide * (kernel - 1), State(), of="state"),
        )
    )

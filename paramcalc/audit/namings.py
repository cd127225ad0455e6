"""Names under which files hold a model's tensors: its release's own, others' and GGUF's."""

from __future__ import annotations

from collections.abc import Iterable

from paramcalc.families.names import Names
from paramcalc.model import Model

GGUF = {
    "layers": "blk",
    "mtp.layers": "blk",
    "embedding": "token_embd",
    "positions": "position_embd",
    "final_norm": "output_norm",
    "head": "output",
    "norm1": "attn_norm",
    "norm2": "ffn_norm",
    "attention.q": "attn_q",
    "attention.k": "attn_k",
    "attention.v": "attn_v",
    "attention.o": "attn_output",
    "attention.q_norm": "attn_q_norm",
    "attention.k_norm": "attn_k_norm",
    "attention.sinks": "attn_sinks",
    "ffn.gate": "ffn_gate",
    "ffn.up": "ffn_up",
    "ffn.down": "ffn_down",
    "ffn.router": "ffn_gate_inp",
    "ffn.experts.*.gate": "ffn_gate_exps",
    "ffn.experts.*.up": "ffn_up_exps",
    "ffn.experts.*.down": "ffn_down_exps",
    "ffn.shared.gate": "ffn_gate_shexp",
    "ffn.shared.up": "ffn_up_shexp",
    "ffn.shared.down": "ffn_down_shexp",
    "ffn.shared_gate": "ffn_gate_inp_shexp",
    "embed_tokens.weight": "nextn.embed_tokens.weight !",
    "enorm.weight": "nextn.enorm.weight !",
    "hnorm.weight": "nextn.hnorm.weight !",
    "eh_proj.weight": "nextn.eh_proj.weight !",
    "shared_head.norm.weight": "nextn.shared_head_norm.weight !",
    "shared_head.head.weight": "nextn.shared_head_head.weight !",
}
"""Names in GGUF files (docs/gguf.md of ggml, and the tensor list of llama.cpp)."""

SEPARATE = {
    f"ffn.experts.*.{part}": f"mlp.experts.{{e}}.{part}_proj" for part in ("gate", "up", "down")
}
"""Experts as most checkpoints hold them: each on its own."""
MIXTRAL = {
    f"ffn.experts.*.{part}": f"block_sparse_moe.experts.{{e}}.{name}"
    for part, name in (("gate", "w1"), ("up", "w3"), ("down", "w2"))
} | {"ffn.router": "block_sparse_moe.gate"}
_QKV = {f"attention.{x}": "attention.qkv" for x in "qkv"}
_GATE_UP = {"ffn.gate": "ffn.gate_up", "ffn.up": "ffn.gate_up"}
_STACKED = {f"ffn.experts.*.{x}": "ffn.experts.gate_up !" for x in ("gate", "up")}
_APART = {f"ffn.experts.*.{x}": f"ffn.experts.{{e}}.{x}" for x in ("gate", "up", "down")}


def namings(model: Model, ggml: bool) -> Iterable[Names]:
    """Yield the tables of names to try, a release's own first.

    Layers of multi-token prediction are numbered after the model's own (as DeepSeek does) unless
    the family puts them under ``mtp`` itself.
    """
    own: Names = model.reading.names if model.reading else {}
    if ggml:
        yield GGUF
        yield {**GGUF, **dict.fromkeys(_QKV, "attn_qkv")}
        yield {**GGUF, **dict.fromkeys(_GATE_UP, "ffn_up")}
        return
    if "layers" in own and not any(name.startswith("mtp.") for name in own):
        own = {**own, "mtp.layers": own["layers"]}
    yield own
    yield {**own, **SEPARATE}
    yield {**own, **MIXTRAL}
    for fused in ({}, _QKV, _GATE_UP, {**_QKV, **_GATE_UP}):
        yield {**_APART, **fused}
        yield {**_STACKED, **fused}

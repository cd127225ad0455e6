"""T5Gemma (arXiv:2504.06225): two Gemma 2 stacks, of sizes of their own, joined by cross
attention."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows
from paramcalc.families import gemma
from paramcalc.families.bart import is_bare, root
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import stack
from paramcalc.ledger import Tensor

_NORMS = ("pre_self_attn", "post_self_attn", "pre_feedforward", "post_feedforward")
_STACK: dict[str, Any] = dict(gemma.TYPES["gemma2"], sliding_window=4096, layer_types=None)

TYPES: dict[str, dict[str, Any]] = {
    "t5gemma": dict(tie_word_embeddings=True),
}


def NAMES(c: Config) -> Names:
    """Llama's, in two stacks."""
    own = root(c)
    alone = "encoder" if _is_encoder(c) else "decoder"
    return {
        **LLAMA,
        "layers": f"{own}{alone}.layers",
        "encoder.layers": f"{own}encoder.layers",
        "embedding": f"{own}{alone}.embed_tokens",
        "final_norm": f"{own}{alone}.norm",
        "encoder.final_norm": f"{own}encoder.norm",
        "head": "lm_head.out_proj",
        **{f"norm{i + 1}": f"{name}_layernorm" for i, name in enumerate(_NORMS)},
        "norm5": "pre_cross_attn_layernorm",
        "norm6": "post_cross_attn_layernorm",
        **{f"cross_attention.{x}": f"cross_attn.{x}_proj" for x in "qkvo"},
    }


def read(c: Config) -> dict[str, Any]:
    """Each stack has an embedding of its own; the head is tied to the decoder's."""
    c.ignore("vocab_size", "tie_word_embeddings")
    source = c.part("encoder", _STACK, main=_is_encoder(c))
    if _is_encoder(c):
        c.ignore("decoder")
        fields = _layers(source, encoding=True)
        return source.card(**fields, norms_per_layer=4, causal=False, head="none")
    target = c.part("decoder", _STACK, main=True)
    for part in (source, target):
        part.ignore("tie_word_embeddings", "max_position_embeddings")
    table = Tensor(
        f"{root(c)}encoder.embed_tokens.weight",
        "embedding",
        (source.vocab_size, source.hidden_size),
        "lookup",
        "vocab",
    )
    encoder = {
        "d_model": source.hidden_size,
        "n_layers": source.num_hidden_layers,
        "n_heads": source.num_attention_heads,
        "n_kv_heads": source.num_key_value_heads,
        "head_dim": source.head_dim,
        "d_ff": source.intermediate_size,
        "norms_per_layer": 4,
        **_layers(source, encoding=True),
    }
    return target.card(
        **_layers(target, encoding=False),
        norms_per_layer=6,
        tie_embeddings=c.tie_word_embeddings,
        head="none" if is_bare(c) else "lm",
        encoder=encoder,
        outer=(Rows((table,)),),
    )


def _is_encoder(c: Config) -> bool:
    """Whether the class is the encoder alone."""
    return c.arch.endswith("EncoderModel")


def _layers(c: Config, *, encoding: bool) -> dict[str, Any]:
    """Gemma 2's layers of one stack, the first and every second one windowed: the encoder's sees
    ``sliding_window`` positions on either side."""
    kinds = c.windows(lambda i: i % 2 == 0)
    if encoding:
        kinds = [{"window": 2 * kind["window"]} if kind else {} for kind in kinds]
    return {"gated_ffn": True, "attention_bias": c.attention_bias, **stack(kinds)}

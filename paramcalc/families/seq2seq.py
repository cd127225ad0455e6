"""Encoder-decoders that change a part of BART's layers: FSMT (two vocabularies, sinusoids stored),
LED (arXiv:2004.05150, a window and a second set of Q, K, V for global tokens), BigBird-Pegasus
(arXiv:2007.14062), Pegasus-X (arXiv:2208.04347), NLLB-MoE (arXiv:2207.04672)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, Norm
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, idle
from paramcalc.families import bart
from paramcalc.families.bart import is_alone
from paramcalc.families.config import Config, Layers, stack
from paramcalc.families.names import Names
from paramcalc.ledger import Row, Tensor
from paramcalc.sight import Both

TYPES: dict[str, dict[str, Any]] = {
    "fsmt": dict(
        langs=['en', 'de'],
        src_vocab_size=42024,
        tgt_vocab_size=42024,
        max_position_embeddings=1024,
        encoder_ffn_dim=4096,
        encoder_layers=12,
        encoder_attention_heads=16,
        decoder_ffn_dim=4096,
        decoder_layers=12,
        decoder_attention_heads=16,
        tie_word_embeddings=False,
        hidden_size=1024,
    ),
    "led": dict(
        vocab_size=50265,
        max_encoder_position_embeddings=16384,
        max_decoder_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        attention_window=512,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "bigbird_pegasus": dict(
        vocab_size=96103,
        max_position_embeddings=4096,
        encoder_layers=16,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=16,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        attention_type='block_sparse',
        block_size=64,
        num_random_blocks=3,
        use_bias=False,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "pegasus_x": dict(
        vocab_size=96103,
        max_position_embeddings=16384,
        encoder_layers=16,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=16,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        num_global_tokens=32,
        block_size=512,
        stagger_local_blocks=True,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "nllb-moe": dict(
        vocab_size=128112,
        max_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        router_bias=False,
        router_dtype='float32',
        router_ignore_padding_tokens=False,
        num_experts=128,
        expert_capacity=64,
        encoder_sparse_step=4,
        decoder_sparse_step=4,
        second_expert_policy='all',
        normalize_router_prob_before_dropping=False,
        batch_prioritized_routing=False,
        moe_eval_capacity_token_fraction=1.0,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
}

KEYS = {"hidden_size": ("d_model",)}

_LONGFORMER = "self_attn.longformer_self_attn"
_EXPERTS = {
    "ffn.up": "ffn.fc1",
    "ffn.down": "ffn.fc2",
    "ffn.router": "ffn.router.classifier",
    "ffn.experts.*.up": "ffn.experts.expert_{e}.fc1",
    "ffn.experts.*.up.bias": "ffn.experts.expert_{e}.fc1.bias",
    "ffn.experts.*.down": "ffn.experts.expert_{e}.fc2",
    "ffn.experts.*.down.bias": "ffn.experts.expert_{e}.fc2.bias",
    "norm2": "cross_attention_layer_norm",
    "encoder.norm2": "ff_layer_norm",
    "norm3": "ff_layer_norm",
    **{f"cross_attention.{x}": f"cross_attention.{x}_proj" for x in "qkv"},
    "cross_attention.o": "cross_attention.out_proj",
}
_SELF = {"q": "query", "k": "key", "v": "value"}
_OWN: dict[str, dict[str, str]] = {
    "fsmt": {"embedding": "model.decoder.embed_tokens", "head": "model.decoder.output_projection"},
    "led": {f"encoder.attention.{x}": f"{_LONGFORMER}.{name}" for x, name in _SELF.items()}
    | {"encoder.attention.o": "self_attn.output"},
    "bigbird_pegasus": {
        f"encoder.attention.{x}": f"self_attn.self.{name}" for x, name in _SELF.items()
    }
    | {"encoder.attention.o": "self_attn.output"},
    "nllb-moe": _EXPERTS,
}


def NAMES(c: Config) -> Names:  # noqa: N802
    """BART's, with the parts that each type changes."""
    found = {**bart.NAMES(c), **_OWN.get(c.model_type, {})}
    if c.model_type == "led":
        found = {k: v.replace("model.", "led.", 1) for k, v in found.items()}
    return found


def read(c: Config) -> dict[str, Any]:
    """Biases, positions and norms of each type; cross attention idle where the decoder is alone."""
    kind, d = c.model_type, c.hidden_size
    heads, alone = c.decoder_attention_heads, is_alone(c)
    final = kind in ("pegasus_x", "nllb-moe")
    biases = {"bigbird_pegasus": c.get("use_bias", False), "pegasus_x": False}.get(kind, True)
    fields: dict[str, Any] = {
        "n_layers": c.decoder_layers,
        "n_heads": heads,
        "n_kv_heads": None,
        "head_dim": None,
        "d_ff": c.decoder_ffn_dim,
        "context": c.get("max_decoder_position_embeddings") or c.max_position_embeddings,
        "gpt2": True,
        "attention_bias": bool(biases),
        "embedding_norm": kind in ("led", "bigbird_pegasus"),
        "final_norm": final,
    }
    encoder: dict[str, Any] = {
        "n_layers": c.encoder_layers,
        "n_heads": c.encoder_attention_heads,
        "d_ff": c.encoder_ffn_dim,
    }
    fields |= {"positions": "none"} if final else {"position_offset": 2 if kind == "fsmt" else 0}
    c.keys |= {"n_layers": "decoder_layers", "n_heads": "decoder_attention_heads"}
    if kind == "bigbird_pegasus" and alone:  # the class never ties
        fields["tie_embeddings"] = False
    own, inside = OWN[kind](c)
    fields |= own
    if alone:
        letters = "qkvo" if biases else ""
        cross = Attention("cross_attention", d, heads, heads, d // heads, d // heads, Both(), letters)
        rows = (*cross.rows(), *Norm("cross_norm", (d,), True).rows())
        return c.card(**fields, blocks=(idle(rows),), norms_per_layer=2)
    if kind != "fsmt":
        root = "led" if kind == "led" else "model"
        copies = bart.tables(c, f"{root}.encoder.embed_tokens", f"{root}.decoder.embed_tokens")
        fields["outer"] = (*fields.get("outer", ()), *copies)
    return c.card(**fields, encoder=encoder | inside)


Parts = tuple[dict[str, Any], dict[str, Any]]


def fsmt(c: Config) -> Parts:
    """Two vocabularies; the head is the decoder's own matrix."""
    table = (c.src_vocab_size, c.hidden_size)
    own = Tensor("model.encoder.embed_tokens.weight", "embedding", table, "lookup", "vocab")
    c.keys["vocab_size"] = "tgt_vocab_size"
    c.ignore("langs", "vocab_size")
    tied = c.get("tie_word_embeddings", False)
    return {"vocab_size": c.tgt_vocab_size, "outer": () if tied else (Rows((own,)),)}, {}


def led(c: Config) -> Parts:
    """The encoder sees a window; its second Q, K, V serve tokens that see everything."""
    n, d = c.encoder_layers, c.hidden_size
    windows = c.per_layer("attention_window", n)
    rows: list[Row] = []
    for name in ("query_global", "key_global", "value_global"):
        rows += linear(f"{_LONGFORMER}.{name}.weight", "attention", d, d)
        rows.append(Tensor(f"{_LONGFORMER}.{name}.bias", "attention", (d,), "bias"))
    extra = idle(rows)
    each: Layers = [{"window": w + 1, "blocks": (extra,)} for w in windows]
    encoder = {"n_positions": c.max_encoder_position_embeddings, **stack(each)}
    return {"n_positions": c.max_decoder_position_embeddings}, encoder


def bigbird(c: Config) -> Parts:
    """Blocks of local, random and global positions in the encoder, or all of them."""
    c.ignore("attention_type", "block_size", "num_random_blocks")
    return {}, {}


def pegasus_x(c: Config) -> Parts:
    """Global tokens beside the text's, with a norm of their own in each encoder layer."""
    d = c.hidden_size
    table = Tensor("model.encoder.embed_global.weight", "embedding", (c.num_global_tokens, d), "lookup")
    norm = (
        Tensor("global_self_attn_layer_norm.weight", "norm", (d,), "scale"),
        Tensor("global_self_attn_layer_norm.bias", "norm", (d,), "bias"),
    )
    c.ignore("stagger_local_blocks", "block_size")
    return {"outer": (Rows((table,)),)}, {"blocks": (Rows(norm),)}


def nllb(c: Config) -> Parts:
    """Every ``sparse_step``-th layer has experts, two of which work on a token."""
    c.ignore(*ROUTING)
    experts: dict[str, Any] = {"n_experts": c.num_experts, "top_k": 2, "router_bias": c.router_bias}
    parts = []
    for n, step in (
        (c.decoder_layers, c.decoder_sparse_step),
        (c.encoder_layers, c.encoder_sparse_step),
    ):
        flags = [step > 0 and (i + 1) % step == 0 for i in range(n)]
        parts.append(stack([{} if flag else {"n_experts": 0} for flag in flags]))
    return experts | parts[0], parts[1]


ROUTING = (
    "batch_prioritized_routing",
    "expert_capacity",
    "moe_eval_capacity_token_fraction",
    "normalize_router_prob_before_dropping",
    "router_dtype",
    "router_ignore_padding_tokens",
    "second_expert_policy",
)
OWN = {
    "fsmt": fsmt,
    "led": led,
    "bigbird_pegasus": bigbird,
    "pegasus_x": pegasus_x,
    "nllb-moe": nllb,
}

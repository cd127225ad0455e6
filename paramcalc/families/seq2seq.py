"""Encoder-decoders that change a part of BART's layers: FSMT (two vocabularies, sinusoids stored),
LED (arXiv:2004.05150, a window and a second set of Q, K, V for global tokens), BigBird-Pegasus
(arXiv:2007.14062), Pegasus-X (arXiv:2208.04347), NLLB-MoE (arXiv:2207.04672)."""

from __future__ import annotations

from typing import Any

from paramcalc import rules
from paramcalc.blocks import Attention
from paramcalc.blocks.rows import Rows, idle
from paramcalc.families import bart
from paramcalc.families.bart import decoder, is_alone, root, table, tables, unfed
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.sight import BothChunk, State

TYPES: dict[str, dict[str, Any]] = {
    "fsmt": dict(
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
        num_experts=128,
        encoder_sparse_step=4,
        decoder_sparse_step=4,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
}

KEYS = {"hidden_size": ("d_model",)}

_LONGFORMER = "self_attn.longformer_self_attn"
_SELF = {"q": "query", "k": "key", "v": "value"}
_OWN: dict[str, dict[str, str]] = {
    "led": {f"encoder.attention.{x}": f"{_LONGFORMER}.{name}" for x, name in _SELF.items()}
    | {"encoder.attention.o": "self_attn.output"},
    "bigbird_pegasus": {
        f"encoder.attention.{x}": f"self_attn.self.{name}" for x, name in _SELF.items()
    }
    | {"encoder.attention.o": "self_attn.output"},
    "nllb-moe": {
        "ffn.up": "ffn.fc1",
        "ffn.down": "ffn.fc2",
        "ffn.router": "ffn.router.classifier",
        "ffn.experts.*.up": "ffn.experts.expert_{e}.fc1",
        "ffn.experts.*.down": "ffn.experts.expert_{e}.fc2",
        "norm2": "cross_attention_layer_norm",
        "encoder.norm2": "ff_layer_norm",
        "norm3": "ff_layer_norm",
        **{f"cross_attention.{x}": f"cross_attention.{x}_proj" for x in "qkv"},
        "cross_attention.o": "cross_attention.out_proj",
    },
}


def NAMES(c: Config) -> Names:
    """BART's, with the parts that each type changes."""
    found = {**bart.NAMES(c), **_OWN.get(c.model_type, {})}
    if c.model_type == "fsmt":
        holder = "encoder" if c.tie_word_embeddings else "decoder"
        found["embedding"] = f"{root(c)}{holder}.embed_tokens"
        found["head"] = f"{root(c)}decoder.output_projection"
    if c.model_type == "led":
        found = {k: v.replace("model.", "led.", 1) for k, v in found.items()}
    return found


def read(c: Config) -> dict[str, Any]:
    """Both stacks, or BigBird-Pegasus's decoder alone, whose head is never tied."""
    kind = c.model_type
    final = kind in ("pegasus_x", "nllb-moe")
    biased = {"bigbird_pegasus": c.get("use_bias", False), "pegasus_x": False}.get(kind, True)
    c.ignore("num_hidden_layers", "num_attention_heads")
    fields: dict[str, Any] = {
        **decoder(c),
        "context": c.get("max_decoder_position_embeddings") or c.max_position_embeddings,
        "gpt2": True,
        "attention_bias": bool(biased),
        "embedding_norm": kind in ("led", "bigbird_pegasus"),
        "final_norm": final,
    }
    fields |= {"positions": "none"} if final else {"position_offset": 2 if kind == "fsmt" else 0}
    own, inside = OWN[kind](c)
    fields |= own
    if is_alone(c):
        c.ignore("tie_word_embeddings", *ENCODER)
        cross = unfed(c, "qkvo" if biased else "")
        return c.card(**fields, tie_embeddings=False, blocks=(cross,), norms_per_layer=2)
    encoder: dict[str, Any] = {
        "n_layers": c.encoder_layers,
        "n_heads": c.encoder_attention_heads,
        "d_ff": c.encoder_ffn_dim,
        "blocks": (),
    }
    if kind != "fsmt":
        copies = tables(c, root(c, "led" if kind == "led" else "model"))
        fields["outer"] = (*fields.get("outer", ()), *copies)
    return c.card(**fields, encoder=encoder | inside)


ENCODER = ("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim")
Parts = tuple[dict[str, Any], dict[str, Any]]
"""What a type adds to the decoder and to the encoder."""


def depth(c: Config, key: str) -> int:
    """A number of layers that a list is about to be as long as. Raises ``ConfigError``."""
    n = c.size(key)
    if n > rules.MOST_LAYERS:
        c.fail(key, n, f"must be at most {rules.MOST_LAYERS:,}", "lower it")
    return n


def fsmt(c: Config) -> Parts:
    """Two vocabularies, or the target's alone where all tables are tied; the decoder has the head
    inside it, in every class."""
    c.keys["vocab_size"] = "tgt_vocab_size"
    c.ignore("langs", "vocab_size", "src_vocab_size")
    own = table(c, f"{root(c)}encoder.embed_tokens", c.src_vocab_size)
    outer = () if c.tie_word_embeddings else (Rows((own,)),)
    return {"vocab_size": c.tgt_vocab_size, "head": "lm", "outer": outer}, {}


def led(c: Config) -> Parts:
    """The encoder sees a window; its second Q, K, V serve tokens that see everything."""
    n, d = depth(c, "encoder_layers"), c.hidden_size
    rows: list[Row] = []
    for name in ("query_global", "key_global", "value_global"):
        rows.append(Tensor(f"{_LONGFORMER}.{name}.weight", "attention", (d, d)))
        rows.append(Tensor(f"{_LONGFORMER}.{name}.bias", "attention", (d,), "bias"))
    extra = idle(rows)
    each: Layers = []
    for window in c.per_layer("attention_window", n):
        if type(window) is not int or window < 2 or window % 2:
            c.fail("attention_window", window, "must be even numbers above 0")
        each.append({"window": window + 1, "blocks": (extra,)})  # half of it on either side
    encoder = {"n_positions": c.max_encoder_position_embeddings, **stack(each)}
    return {"n_positions": c.max_decoder_position_embeddings}, encoder


def bigbird(c: Config) -> Parts:
    """Blocks of local, random and global positions in the encoder: all, while a text is short."""
    c.ignore("attention_type", "block_size", "num_random_blocks")
    return {}, {}


def pegasus_x(c: Config) -> Parts:
    """The encoder sees its own block, and global tokens that stand beside the text's, with a norm
    of their own. Every second layer's blocks are shifted by half, which the pairs leave out; so
    they do what the global tokens themselves compute."""
    c.ignore("stagger_local_blocks")
    d, width = c.hidden_size, c.share("hidden_size", "encoder_attention_heads")
    heads, beside = d // width, c.size("num_global_tokens")
    sight = BothChunk(c.size("block_size"))
    local = Attention("attention", d, heads, heads, width, width, sight, cached=False)
    norm = "global_self_attn_layer_norm"
    rows: list[Row] = [
        Tensor(f"{norm}.weight", "norm", (d,), "scale"),
        Tensor(f"{norm}.bias", "norm", (d,), "bias"),
        *(
            Operation(f"attention.global.{part}", "attention", 2 * d * beside, State())
            for part in ("scores", "values")
        ),
    ]
    blocks = (local, Rows(tuple(rows)))
    own = table(c, f"{root(c)}encoder.embed_global", beside)
    encoder = {"attention": False, "norms_per_layer": 2, "blocks": blocks}
    return {"outer": (Rows((own,)),)}, encoder


def nllb(c: Config) -> Parts:
    """Every ``sparse_step``-th layer has experts, two of which work on a token."""
    c.ignore(*ROUTING)
    experts = {"n_experts": c.num_experts}
    parts = []
    for side in ("decoder", "encoder"):
        n, step = depth(c, f"{side}_layers"), c.get(f"{side}_sparse_step")
        flags = [step > 0 and (i + 1) % step == 0 for i in range(n)]
        parts.append(experts | stack([{} if flag else {"n_experts": 0} for flag in flags]))
    return {"top_k": 2, "router_bias": c.router_bias, **parts[0]}, parts[1]


ROUTING = (
    "batch_prioritized_routing",
    "expert_capacity",
    "moe_eval_capacity_token_fraction",
    "normalize_router_prob_before_dropping",
    "router_dtype",
    "router_ignore_padding_tokens",
    "second_expert_policy",
)
"""Keys of nllb-moe that say how tokens find experts."""
OWN = {
    "fsmt": fsmt,
    "led": led,
    "bigbird_pegasus": bigbird,
    "pegasus_x": pegasus_x,
    "nllb-moe": nllb,
}

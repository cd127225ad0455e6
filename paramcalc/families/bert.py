"""BERT (arXiv:1810.04805) and the encoders built of its layers: post-norm, biases everywhere,
learned positions, segment embeddings, a dense layer and a norm before the masked head.

RoBERTa (arXiv:1907.11692) and its kin, ALBERT (one layer's weights run L times), ELECTRA,
DistilBERT, MPNet, Megatron-BERT and the pre-norm types, BigBird, RemBERT, RoFormer,
and others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.blocks import Attention, FeedForward, Norm, Pooler
from paramcalc.blocks.again import Again
from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.bert_names import ROOTS, names
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Row, Tensor
from paramcalc.sight import Both


class Kind(NamedTuple):
    """What sets a type apart from BERT."""

    segments: bool = True
    learned: bool = True
    embedding_norm: bool = True
    final_norm: bool = False
    transform: bool = True
    narrow: bool = False
    decoder_bias: bool = True


KINDS: dict[str, Kind] = {
    "albert": Kind(narrow=True),
    "bert": Kind(),
    "bert-generation": Kind(segments=False, transform=False),
    "big_bird": Kind(),
    "camembert": Kind(),
    "data2vec-text": Kind(),
    "distilbert": Kind(segments=False, decoder_bias=False),
    "electra": Kind(narrow=True, decoder_bias=False),
    "ernie": Kind(),
    "ibert": Kind(),
    "megatron-bert": Kind(embedding_norm=False, final_norm=True),
    "mpnet": Kind(segments=False),
    "rembert": Kind(narrow=True, decoder_bias=False),
    "roberta": Kind(),
    "roberta-prelayernorm": Kind(final_norm=True),
    "roformer": Kind(learned=False, narrow=True),
    "xlm-roberta": Kind(),
    "xlm-roberta-xl": Kind(embedding_norm=False, final_norm=True),
}

TYPES: dict[str, dict[str, Any]] = {
    "albert": dict(
        vocab_size=30000,
        embedding_size=128,
        hidden_size=4096,
        num_hidden_layers=12,
        num_hidden_groups=1,
        num_attention_heads=64,
        intermediate_size=16384,
        inner_group_num=1,
        max_position_embeddings=512,
        type_vocab_size=2,
        tie_word_embeddings=True,
    ),
    "bert": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "bert-generation": dict(
        vocab_size=50358,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        max_position_embeddings=512,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "big_bird": dict(
        vocab_size=50358,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=4096,
        type_vocab_size=2,
        attention_type="block_sparse",
        use_bias=True,
        rescale_embeddings=False,
        block_size=64,
        num_random_blocks=3,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "camembert": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "data2vec-text": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "distilbert": dict(
        vocab_size=30522,
        max_position_embeddings=512,
        sinusoidal_pos_embds=False,
        qa_dropout=0.1,
        seq_classif_dropout=0.2,
        tie_word_embeddings=True,
        hidden_size=768,
        num_attention_heads=12,
        num_hidden_layers=6,
        intermediate_size=3072,
    ),
    "electra": dict(
        vocab_size=30522,
        embedding_size=128,
        hidden_size=256,
        num_hidden_layers=12,
        num_attention_heads=4,
        intermediate_size=1024,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "ernie": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        task_type_vocab_size=3,
        use_task_id=False,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "ibert": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        quant_mode=False,
        tie_word_embeddings=True,
    ),
    "megatron-bert": dict(
        vocab_size=29056,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "mpnet": dict(
        vocab_size=30527,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        relative_attention_num_buckets=32,
        tie_word_embeddings=True,
    ),
    "rembert": dict(
        vocab_size=250300,
        hidden_size=1152,
        num_hidden_layers=32,
        num_attention_heads=18,
        input_embedding_size=256,
        output_embedding_size=1664,
        intermediate_size=4608,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=False,
    ),
    "roberta": dict(
        vocab_size=50265,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "roberta-prelayernorm": dict(
        vocab_size=50265,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "roformer": dict(
        vocab_size=50000,
        embedding_size=None,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=1536,
        type_vocab_size=2,
        rotary_value=False,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "xlm-roberta": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "xlm-roberta-xl": dict(
        vocab_size=250880,
        hidden_size=2560,
        num_hidden_layers=36,
        num_attention_heads=32,
        intermediate_size=10240,
        max_position_embeddings=514,
        type_vocab_size=1,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
}

KEYS = {
    "hidden_size": ("dim",),
    "num_hidden_layers": ("n_layers",),
    "num_attention_heads": ("n_heads",),
    "intermediate_size": ("hidden_dim",),
}


def NAMES(c: Config) -> Names:
    """By type: see ``bert_names``."""
    return names(c.model_type)


def is_causal(c: Config) -> bool:
    """Whether the class generates, and so keeps a cache."""
    return c.arch.endswith(("CausalLM", "LMHeadModel", "Decoder"))


def read(c: Config) -> dict[str, Any]:
    """BERT's layers with what a type leaves out or adds."""
    kind, name = KINDS[c.model_type], c.model_type
    fields: dict[str, Any] = {
        "gpt2": True,
        "causal": is_causal(c),
        "embedding_norm": kind.embedding_norm,
        "final_norm": kind.final_norm,
        "head": "masked" if kind.transform else "lm",
        "head_bias": True,
        "n_token_types": (c.get("type_vocab_size") or None) if kind.segments else None,
    }
    if not kind.learned:
        fields["positions"] = "none"
    rows: list[Row] = []
    if kind.narrow:
        fields |= narrow(c, rows)
    if name == "albert":
        fields |= {"share_layers": True, **_groups(c)}
    if name == "ernie" and c.get("use_task_id", False):
        table = (c.task_type_vocab_size, c.hidden_size)
        rows.append(
            Tensor("ernie.embeddings.task_type_embeddings.weight", "embedding", table, "lookup")
        )
    if name == "mpnet":
        table = (c.relative_attention_num_buckets, c.num_attention_heads)
        own = "mpnet.encoder.relative_attention_bias.weight"
        rows.append(Tensor(own, "position", table, "lookup"))
    if name == "big_bird":
        fields["attention_bias"] = "qkvo" if c.use_bias else "o"
        rows += Pooler(c.hidden_size).rows()
    if name == "roformer":  # sinusoids of a head's width, stored
        table = (c.max_position_embeddings, c.share("hidden_size", "num_attention_heads"))
        rows.append(Tensor("roformer.encoder.embed_positions.weight", "position", table, "lookup"))
    if name == "distilbert":  # sinusoids are stored as a table too
        c.ignore("sinusoidal_pos_embds", "seq_classif_dropout", "qa_dropout")
    if kind.decoder_bias and not c.get("tie_word_embeddings", True):
        rows.append(vector(f"{ROOTS[name].head}.decoder.bias", "head", c.vocab_size))
    c.ignore("attention_type", "block_size", "num_random_blocks", "quant_mode", "force_dequantize")
    c.ignore("use_task_id", "task_type_vocab_size", "rescale_embeddings", "type_vocab_size")
    c.ignore("rotary_value", "input_embedding_size", "output_embedding_size", "embedding_size")
    if c.get("add_cross_attention", False):
        c.left_out.append("cross attention (add_cross_attention)")
    outer = (Rows(tuple(rows)),) if rows else ()
    return c.card(n_kv_heads=None, head_dim=None, outer=outer, **fields)


def narrow(c: Config, rows: list[Row]) -> dict[str, Any]:
    """An embedding narrower than the stream, with a projection up (and the head reads it back)."""
    d, name = c.hidden_size, c.model_type
    if name == "rembert":  # the head has a width of its own, and is never tied
        into, out = c.input_embedding_size, c.output_embedding_size
        rows += [
            Tensor("cls.predictions.dense.weight", "head", (out, d), "matmul"),
            Tensor("cls.predictions.dense.bias", "head", (out,), "bias"),
            Tensor("cls.predictions.LayerNorm.weight", "norm", (out,), "scale"),
            Tensor("cls.predictions.LayerNorm.bias", "norm", (out,), "bias"),
            Tensor(
                "cls.predictions.decoder.weight", "head", (c.vocab_size, out), "matmul", "vocab"
            ),
            Tensor("cls.predictions.decoder.bias", "head", (c.vocab_size,), "bias", "vocab"),
        ]
        c.ignore("tie_word_embeddings")
        return {"d_embedding": into, "d_positions": into, "projection_bias": True} | {
            "head": "none",
            "head_bias": False,
        }
    width = c.get("embedding_size") or d
    if width == d and name != "albert":
        return {}
    return {"d_embedding": width, "d_positions": width, "projection_bias": True}


def _groups(c: Config) -> dict[str, Any]:
    """ALBERT may have several groups of layers, each of which runs its share of the depth, or
    several layers in the one that is shared."""
    groups, inner = c.size("num_hidden_groups", 1), c.size("inner_group_num", 1)
    if groups == inner == 1:
        return {}
    n, d, heads = c.num_hidden_layers, c.hidden_size, c.num_attention_heads
    width = c.share("hidden_size", "num_attention_heads")
    blocks = (
        Norm("norm1", (d,), True),
        Norm("norm2", (d,), True),
        Attention("attention", d, heads, heads, width, width, Both(), "qkvo", cached=False),
        FeedForward("ffn", d, c.intermediate_size, False, True),
    )
    times = [sum(i * groups // n == group for i in range(n)) for group in range(groups)]
    layers = [{"repeat": inner, "blocks": (Again(blocks, t),)} for t in times]
    return {
        "share_layers": False,
        "n_layers": groups * inner,
        "attention": False,
        "ffn": False,
        "norms_per_layer": 0,
        "layers": layers,
    }

"""BERT (arXiv:1810.04805) and the encoders built like it: RoBERTa (arXiv:1907.11692), ELECTRA
(arXiv:2003.10555), Megatron-BERT (arXiv:1909.08053), RemBERT (arXiv:2010.12821), MPNet
(arXiv:2004.09297), DistilBERT (arXiv:1910.01108), RoFormer (arXiv:2104.09864), LayoutLM
(arXiv:1912.13318), BigBird (arXiv:2007.14062) and more.

Post-norm layers with biases everywhere, a norm after the embeddings, learned positions, segments,
and a head of a dense layer, a norm and the token table. ``is_decoder`` makes them causal; a class
without a head (``BertModel``) has a pooler instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.blocks import Attention, Head, MaskedHead, Norm, Pooler
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, idle, vector
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor
from paramcalc.sight import Both


class Prediction(NamedTuple):
    """Where a type keeps the dense layer, the norm and the matrix of its head, and the bias that
    stands beside the matrix: untied, the matrix has one of its own as well."""

    dense: str
    norm: str
    out: str
    bias: str


CLS = Prediction(
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder",
    "cls.predictions.bias",
)
LM_HEAD = Prediction("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head.bias")
GENERATOR = Prediction(
    "generator_predictions.dense",
    "generator_predictions.LayerNorm",
    "generator_lm_head",
    "generator_lm_head.bias",
)
_REMBERT = Prediction(
    "cls.predictions.dense",
    "cls.predictions.LayerNorm",
    "cls.predictions.decoder",
    "cls.predictions.decoder.bias",
)
_VOCAB = Prediction(
    "vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector.bias"
)


class Kind(NamedTuple):
    """What sets a type apart: the root of its names, its head, where its norms stand, and whether
    it has segments and, without a head, a pooler."""

    root: str
    head: Prediction = CLS
    norm1: str = "attention.output.LayerNorm"
    norm2: str = "output.LayerNorm"
    final_norm: str = ""
    embedding_norm: bool = True
    segments: bool = True
    pooler: str = "pooler.dense"
    head_first: bool = False


KINDS = {
    "bert": Kind("bert"),
    "bert-generation": Kind("bert", LM_HEAD, segments=False, pooler=""),
    "big_bird": Kind("bert", pooler="pooler"),
    "camembert": Kind("roberta", LM_HEAD, head_first=True),
    "data2vec-text": Kind("data2vec_text", LM_HEAD),
    "distilbert": Kind(
        "distilbert", _VOCAB, "sa_layer_norm", "output_layer_norm", segments=False, pooler=""
    ),
    "electra": Kind("electra", GENERATOR, pooler=""),
    "ernie": Kind("ernie"),
    "ibert": Kind("ibert", LM_HEAD),
    "layoutlm": Kind("layoutlm"),
    "megatron-bert": Kind("bert", CLS, "attention.ln", "ln", "encoder.ln", False),
    "mpnet": Kind("mpnet", LM_HEAD, "attention.LayerNorm", segments=False),
    "rembert": Kind("rembert", _REMBERT),
    "roberta": Kind("roberta", LM_HEAD),
    "roberta-prelayernorm": Kind(
        "roberta_prelayernorm",
        LM_HEAD,
        "attention.LayerNorm",
        "intermediate.LayerNorm",
        "LayerNorm",
    ),
    "roformer": Kind("roformer", pooler=""),
    "xlm-roberta": Kind("roberta", LM_HEAD, head_first=True),
    "xlm-roberta-xl": Kind(
        "roberta",
        LM_HEAD,
        "attention.self_attn_layer_norm",
        "LayerNorm",
        "encoder.LayerNorm",
        False,
    ),
}

_BERT = dict(
    vocab_size=30522,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
    max_position_embeddings=512,
    type_vocab_size=2,
    tie_word_embeddings=True,
    is_decoder=False,
    add_cross_attention=False,
)
_LARGE = dict(
    hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
)

TYPES: dict[str, dict[str, Any]] = {
    "bert": dict(_BERT),
    "bert-generation": dict(_BERT | _LARGE, vocab_size=50358),
    "big_bird": dict(
        _BERT,
        vocab_size=50358,
        max_position_embeddings=4096,
        use_bias=True,
        attention_type="block_sparse",
        block_size=64,
        num_random_blocks=3,
    ),
    "camembert": dict(_BERT),
    "data2vec-text": dict(_BERT),
    "distilbert": dict(_BERT, num_hidden_layers=6),
    "electra": dict(
        _BERT, embedding_size=128, hidden_size=256, num_attention_heads=4, intermediate_size=1024
    ),
    "ernie": dict(_BERT, task_type_vocab_size=3, use_task_id=False),
    "ibert": dict(_BERT),
    "layoutlm": dict(_BERT, max_2d_position_embeddings=1024),
    "megatron-bert": dict(_BERT | _LARGE, vocab_size=29056),
    "mpnet": dict(_BERT, vocab_size=30527, relative_attention_num_buckets=32),
    "rembert": dict(
        _BERT,
        vocab_size=250300,
        hidden_size=1152,
        num_hidden_layers=32,
        num_attention_heads=18,
        intermediate_size=4608,
        input_embedding_size=256,
        output_embedding_size=1664,
    ),
    "roberta": dict(_BERT, vocab_size=50265),
    "roberta-prelayernorm": dict(_BERT, vocab_size=50265),
    "roformer": dict(_BERT, vocab_size=50000, max_position_embeddings=1536, embedding_size=None),
    "xlm-roberta": dict(_BERT),
    "xlm-roberta-xl": dict(
        _BERT,
        vocab_size=250880,
        hidden_size=2560,
        num_hidden_layers=36,
        num_attention_heads=32,
        intermediate_size=10240,
        max_position_embeddings=514,
        type_vocab_size=1,
    ),
}

KEYS = {
    "hidden_size": ("dim",),
    "intermediate_size": ("hidden_dim",),
    "num_hidden_layers": ("n_layers",),
    "num_attention_heads": ("n_heads",),
}

_MPNET = {f"attention.{x}": f"attention.attn.{x}" for x in "qkvo"}
_DISTIL = {
    **{f"attention.{x}": f"attention.{x}_lin" for x in "qkv"},
    "attention.o": "attention.out_lin",
    "ffn.up": "ffn.lin1",
    "ffn.down": "ffn.lin2",
}
_OWN: dict[str, dict[str, str]] = {"mpnet": _MPNET, "distilbert": _DISTIL}


def is_bare(c: Config) -> bool:
    """Whether the class has no head: ``BertModel``, ``BertGenerationEncoder``."""
    return c.arch.endswith(("Model", "Encoder")) and not c.arch.endswith("LMHeadModel")


def has_head(c: Config) -> bool:
    """Whether the class predicts tokens (a config that names no class does)."""
    ends = ("ForMaskedLM", "ForCausalLM", "LMHeadModel", "ForPreTraining", "Decoder")
    return not c.arch or c.arch.endswith(ends)


def bert_names(c: Config, kind: Kind) -> dict[str, str]:
    """BERT's names under a type's root, which a class without a head leaves out."""
    root = "" if is_bare(c) else f"{kind.root}."
    tied = bool(c.tie_word_embeddings)
    attention = {"q": "self.query", "k": "self.key", "v": "self.value", "o": "output.dense"}
    found = {
        "layers": f"{root}encoder.layer",
        "embedding": f"{root}embeddings.word_embeddings",
        "token_types": f"{root}embeddings.token_type_embeddings",
        "positions": f"{root}embeddings.position_embeddings",
        "embedding_norm": f"{root}embeddings.LayerNorm",
        "embedding.project": f"{root}embeddings_project",
        "final_norm": f"{root}{kind.final_norm}",
        "pooler": f"{root}{kind.pooler}",
        "pretraining": "cls.seq_relationship",
        **{f"attention.{x}": f"attention.{name}" for x, name in attention.items()},
        **{f"cross_attention.{x}": f"crossattention.{name}" for x, name in attention.items()},
        "cross_norm": kind.norm1.replace("attention", "crossattention"),
        "ffn.up": "intermediate.dense",
        "ffn.down": "output.dense",
        "norm1": kind.norm1,
        "norm2": kind.norm2,
        "head.dense": kind.head.dense,
        "head.norm": kind.head.norm,
        "head": kind.head.out,
        "head.bias": kind.head.bias if tied else f"{kind.head.out}.bias",
    }
    if kind.head_first and tied and has_head(c):  # the framework stores it under the head's name
        found["embedding"] = kind.head.out
    return found


def NAMES(c: Config) -> Names:
    """BERT's; DistilBERT and MPNet name a layer's matrices otherwise."""
    found = bert_names(c, KINDS[c.model_type]) | _OWN.get(c.model_type, {})
    root = found["layers"].removesuffix("encoder.layer")
    if c.model_type == "distilbert":
        found["layers"] = f"{root}transformer.layer"
    if c.model_type == "rembert":
        found["embedding.project"] = f"{root}encoder.embedding_hidden_mapping_in"
    if c.model_type == "roformer":
        found["positions"] = f"{root}encoder.embed_positions"
    found["relative_positions"] = f"{root}encoder.relative_attention_bias"
    found["discriminator"] = "discriminator_predictions.dense"
    found["discriminator.real"] = "discriminator_predictions.dense_prediction"
    found["tasks"] = f"{root}embeddings.task_type_embeddings"
    return found | {f"places.{x}": f"{root}embeddings.{x}_position_embeddings" for x in "xyhw"}


def bert_fields(c: Config, kind: Kind, *, always_pooler: bool = False) -> dict[str, Any]:
    """The fields that BERT's family shares: a layer's sublayers, the tables, the class's head."""
    causal = bool(c.get("is_decoder", False))
    fields: dict[str, Any] = {
        "gpt2": True,
        "causal": causal,
        "head_dim": None,
        "n_kv_heads": None,
        "embedding_norm": kind.embedding_norm,
        "final_norm": bool(kind.final_norm),
        "n_token_types": (c.get("type_vocab_size", 0) or None) if kind.segments else None,
    }
    outer: list[Any] = []
    c.ignore("type_vocab_size")
    if has_head(c):
        fields |= {"head": "masked", "head_bias": True}
        if not c.tie_word_embeddings and kind.head.bias != f"{kind.head.out}.bias":
            outer.append(idle([vector(kind.head.bias, "head", c.vocab_size)]))  # never added
    else:
        fields["head"] = "none"
        if not is_bare(c):
            c.left_out.append(f"the head of {c.arch}")
    pooled = is_bare(c) or c.arch.endswith("ForPreTraining") or always_pooler
    if pooled and kind.pooler and causal:
        outer.append(Pooler(c.hidden_size))
    elif pooled and kind.pooler:
        fields["pooler"] = True
    if c.arch.endswith("ForPreTraining") and kind.pooler:
        two = linear("pretraining", "head", 2, c.hidden_size, bias=True, stream="sequence")
        outer.append(Rows(tuple(two)))
    if causal and c.get("add_cross_attention", False):
        fields["blocks"] = (crossing(c),)
    return fields | {"outer": tuple(outer)}


def crossing(c: Config) -> Rows:
    """A decoder's attention to another model's states, and its norm: idle on a text alone."""
    d, heads, width = c.hidden_size, c.num_attention_heads, head_dim(c)
    cross = Attention("cross_attention", d, heads, heads, width, width, Both(), "qkvo", cross=True)
    return idle((*cross.rows(), *Norm("cross_norm", (d,), True).rows()))


def head_dim(c: Config) -> int:
    """The width of a head, which must share out the model's."""
    return c.share("hidden_size", "num_attention_heads")


def read(c: Config) -> dict[str, Any]:
    """What each type adds to BERT."""
    kind, name, d = KINDS[c.model_type], c.model_type, c.hidden_size
    fields = bert_fields(c, kind, always_pooler=name in ("big_bird", "layoutlm"))
    outer: tuple[Any, ...] = fields["outer"]
    width = c.get("embedding_size", d) if name in ("electra", "roformer") else d
    if width != d:
        fields |= {"d_embedding": width, "d_positions": width, "projection_bias": True}
    if name == "bert-generation" and has_head(c):  # the matrix alone
        fields["head"] = "lm"
    if name == "electra" and c.arch.endswith("ForPreTraining"):  # tells real tokens from others
        dense = linear("discriminator", "head", d, d, bias=True)
        real = linear("discriminator.real", "head", 1, d, bias=True)
        fields["head"] = "none"
        outer = (Rows((*dense, *real)),)
    if name == "roformer":  # sinusoids of a head's width, kept as a table
        fields["d_positions"] = head_dim(c)
    if name == "mpnet":
        fields["relative_buckets"] = c.relative_attention_num_buckets
    if name == "ernie" and c.use_task_id:
        outer += (Rows((Tensor("tasks", "embedding", (c.task_type_vocab_size, d), "lookup"),)),)
    if name == "layoutlm":  # a box: left, top, height, width
        table = (c.max_2d_position_embeddings, d)
        outer += (Rows(tuple(Tensor(f"places.{x}", "position", table, "lookup") for x in "xyhw")),)
    if name == "big_bird" and not c.use_bias:
        fields["attention_bias"] = "o"
    if name == "rembert":  # in and out of different widths, never tied
        into, out = c.input_embedding_size, c.output_embedding_size
        fields |= {"d_embedding": into, "d_positions": into, "projection_bias": True}
        if has_head(c):
            fields["head"] = "none"
            outer += (MaskedHead(d, out, True, True), Head(c.vocab_size, d, out, False, True))
    return c.card(**fields | {"outer": outer})

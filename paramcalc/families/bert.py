"""BERT (arXiv:1810.04805) and the encoders built like it: RoBERTa (arXiv:1907.11692), ELECTRA
(arXiv:2003.10555), Megatron-BERT (arXiv:1909.08053), RemBERT (arXiv:2010.12821), MPNet
(arXiv:2004.09297), DistilBERT (arXiv:1910.01108), RoFormer (arXiv:2104.09864), LayoutLM
(arXiv:1912.13318), BigBird (arXiv:2007.14062) and more.

Post-norm layers with biases everywhere, a norm after the embeddings, learned positions, segments,
and a head of a dense layer, a norm and the token table. A class that generates, or ``is_decoder``,
makes them causal; a class without a head (``BertModel``) has a pooler instead.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.blocks import Attention, Block, Head, MaskedHead, Norm, Pooler
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, idle, vector
from paramcalc.families.config import Config
from paramcalc.families.heads import pools
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor
from paramcalc.sight import Both


class Prediction(NamedTuple):
    """Where a type keeps the dense layer, the norm and the matrix of its head, and the bias beside
    the matrix: not tied, a matrix by another name has one of its own as well."""

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
    """What sets a type apart: the root of its names, its head, the names of its norms, whether it
    has segments, and what a class without a head calls its pooler."""

    root: str
    head: Prediction = CLS
    norm1: str = "attention.output.LayerNorm"
    norm2: str = "output.LayerNorm"
    final_norm: str = ""
    embedding_norm: bool = True
    segments: bool = True
    pooler: str = "pooler.dense"


KINDS = {
    "bert": Kind("bert"),
    "bert-generation": Kind("bert", LM_HEAD, segments=False, pooler=""),
    "big_bird": Kind("bert", pooler="pooler"),
    "camembert": Kind("roberta", LM_HEAD),
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
    "xlm-roberta": Kind("roberta", LM_HEAD),
    "xlm-roberta-xl": Kind(
        "roberta",
        LM_HEAD,
        "attention.self_attn_layer_norm",
        "LayerNorm",
        "encoder.LayerNorm",
        False,
    ),
}

BERT: dict[str, Any] = dict(
    vocab_size=30522,
    hidden_size=768,
    num_hidden_layers=12,
    num_attention_heads=12,
    intermediate_size=3072,
    max_position_embeddings=512,
    type_vocab_size=2,
    tie_word_embeddings=True,
)
_LARGE = dict(
    hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096
)

TYPES: dict[str, dict[str, Any]] = {
    "bert": dict(BERT),
    "bert-generation": dict(BERT | _LARGE, vocab_size=50358),
    "big_bird": dict(BERT, vocab_size=50358, max_position_embeddings=4096, use_bias=True),
    "camembert": dict(BERT),
    "data2vec-text": dict(BERT),
    "distilbert": dict(BERT, num_hidden_layers=6),
    "electra": dict(
        BERT, embedding_size=128, hidden_size=256, num_attention_heads=4, intermediate_size=1024
    ),
    "ernie": dict(BERT, task_type_vocab_size=3, use_task_id=False),
    "ibert": dict(BERT),
    "layoutlm": dict(BERT, max_2d_position_embeddings=1024),
    "megatron-bert": dict(BERT | _LARGE, vocab_size=29056),
    "mpnet": dict(BERT, vocab_size=30527, relative_attention_num_buckets=32),
    "rembert": dict(
        BERT,
        vocab_size=250300,
        hidden_size=1152,
        num_hidden_layers=32,
        num_attention_heads=18,
        intermediate_size=4608,
        input_embedding_size=256,
        output_embedding_size=1664,
        tie_word_embeddings=False,
    ),
    "roberta": dict(BERT, vocab_size=50265),
    "roberta-prelayernorm": dict(BERT, vocab_size=50265),
    "roformer": dict(BERT, vocab_size=50000, max_position_embeddings=1536, embedding_size=None),
    "xlm-roberta": dict(BERT),
    "xlm-roberta-xl": dict(
        BERT,
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

_HEADS = ("ForMaskedLM", "ForCausalLM", "LMHeadModel", "ForPreTraining", "Decoder")


def is_bare(c: Config) -> bool:
    """Whether the class has no head: ``BertModel``, ``BertGenerationEncoder``."""
    return c.arch.endswith(("Model", "Encoder")) and not has_head(c)


def has_head(c: Config) -> bool:
    """Whether the class predicts tokens, as one that is not named is taken to do."""
    return not c.arch or c.arch.endswith(_HEADS)


def is_causal(c: Config) -> bool:
    """Whether the class generates, and so keeps a cache."""
    ends = ("ForCausalLM", "LMHeadModel", "Decoder")
    return bool(c.get("is_decoder", False)) or c.arch.endswith(ends)


def root(c: Config, kind: Kind) -> str:
    """What a type's names start with: nothing in a class without a head."""
    return "" if is_bare(c) else f"{kind.root}."


def bert_names(c: Config, kind: Kind) -> dict[str, str]:
    """BERT's names, with a type's own for its root, its norms and its head."""
    at, tied = root(c, kind), bool(c.tie_word_embeddings)
    attention = {"q": "self.query", "k": "self.key", "v": "self.value", "o": "output.dense"}
    return {
        "layers": f"{at}encoder.layer",
        "embedding": f"{at}embeddings.word_embeddings",
        "token_types": f"{at}embeddings.token_type_embeddings",
        "positions": f"{at}embeddings.position_embeddings",
        "embedding_norm": f"{at}embeddings.LayerNorm",
        "embedding.project": f"{at}embeddings_project",
        "final_norm": f"{at}{kind.final_norm}",
        "pooler": f"{at}{kind.pooler}",
        "pairs": "cls.seq_relationship",
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


def NAMES(c: Config) -> Names:
    """BERT's; MPNet and DistilBERT name a layer's matrices otherwise."""
    kind, name = KINDS[c.model_type], c.model_type
    found, at = bert_names(c, kind), root(c, kind)
    found |= {f"places.{x}": f"{at}embeddings.{x}_position_embeddings" for x in "xyhw"}
    found["tasks"] = f"{at}embeddings.task_type_embeddings"
    found["relative_positions"] = f"{at}encoder.relative_attention_bias"
    found["real"] = "discriminator_predictions.dense"
    found["real.out"] = "discriminator_predictions.dense_prediction"
    if name == "mpnet":
        found |= {f"attention.{x}": f"attention.attn.{x}" for x in "qkvo"}
    if name == "distilbert":
        found["layers"] = f"{at}transformer.layer"
        found |= {f"attention.{x}": f"attention.{x}_lin" for x in "qkv"}
        found |= {"attention.o": "attention.out_lin", "ffn.up": "ffn.lin1", "ffn.down": "ffn.lin2"}
    if name == "rembert":
        found["embedding.project"] = f"{at}encoder.embedding_hidden_mapping_in"
    if name == "roformer":
        found["positions"] = f"{at}encoder.embed_positions"
    return found


def bert_fields(c: Config, kind: Kind, *, pooled: bool = False) -> dict[str, Any]:
    """What the family shares: a layer's parts, the tables, the head of the class. ``pooled`` types
    have a pooler in every class."""
    causal, head = is_causal(c), has_head(c)
    outer: list[Block] = []
    c.ignore("type_vocab_size", "is_decoder")
    if head and not c.tie_word_embeddings and kind.head.bias != f"{kind.head.out}.bias":
        outer.append(idle([vector(kind.head.bias, "head", c.vocab_size)]))  # nothing adds it
    both = c.arch.endswith("ForPreTraining") and bool(kind.pooler)  # and tells pairs of sentences
    if (pooled or both or is_bare(c) or pools(c.model_type, c.arch)) and kind.pooler:
        outer.append(Pooler(c.hidden_size))
    if both and c.model_type != "roc_bert":
        pairs = linear("pairs", "head", 2, c.hidden_size, bias=True, stream="sequence")
        outer.append(Rows(tuple(pairs)))
    crossing = bool(c.get("add_cross_attention", False)) and bool(c.get("is_decoder", False))
    return {
        "gpt2": True,
        "causal": causal,
        "head_dim": None,
        "n_kv_heads": None,
        "embedding_norm": kind.embedding_norm,
        "final_norm": bool(kind.final_norm),
        "n_token_types": (c.get("type_vocab_size", 0) or None) if kind.segments else None,
        "head": "masked" if head else "none",
        "head_bias": head,
        "blocks": (cross(c),) if crossing else None,
        "outer": tuple(outer),
    }


def cross(c: Config) -> Rows:
    """A decoder's attention to another model's states, and its norm: idle on a text alone."""
    d, heads, width = c.hidden_size, c.num_attention_heads, head_dim(c)
    biases = "qkvo" if c.get("use_bias", True) else "o"
    own = Attention("cross_attention", d, heads, heads, width, width, Both(), biases, cross=True)
    return idle((*own.rows(), *Norm("cross_norm", (d,), True).rows()))


def head_dim(c: Config) -> int:
    """The width of a head: the stream's, shared out."""
    return c.share("hidden_size", "num_attention_heads")


def narrow(c: Config, width: int) -> dict[str, Any]:
    """Tables narrower (or wider) than the stream, and a projection with a bias to it."""
    return {"d_embedding": width, "d_positions": width, "projection_bias": True}


def read(c: Config) -> dict[str, Any]:
    """What each type adds to BERT."""
    c.strict = True
    kind, name, d = KINDS[c.model_type], c.model_type, c.hidden_size
    bird = c.arch == "BigBirdForQuestionAnswering"  # the one class without a pooler
    fields = bert_fields(c, kind, pooled=name in ("big_bird", "layoutlm") and not bird)
    outer: tuple[Block, ...] = fields.pop("outer")
    if name in ("electra", "roformer") and (c.get("embedding_size") or d) != d:
        fields |= narrow(c, c.embedding_size)
    if name == "bert-generation" and has_head(c):  # the matrix alone
        fields["head"] = "lm"
    if name == "electra" and c.arch.endswith("ForPreTraining"):  # tells real tokens from others
        real = linear("real", "head", d, d, bias=True), linear("real.out", "head", 1, d, bias=True)
        fields |= {"head": "none", "head_bias": False}
        outer = (Rows(tuple(row for part in real for row in part)),)
    if name == "roformer":  # sinusoids of a head's width, kept as a table
        fields["d_positions"] = head_dim(c)
    if name == "mpnet":
        fields["relative_buckets"] = c.relative_attention_num_buckets
    if name == "ernie" and c.use_task_id:
        outer += (Rows((Tensor("tasks", "embedding", (c.task_type_vocab_size, d), "lookup"),)),)
    if name == "layoutlm":  # a box: left, top, height, width
        table = (c.max_2d_position_embeddings, d)
        outer += (Rows(tuple(Tensor(f"places.{x}", "position", table, "lookup") for x in "xyhw")),)
    if name == "big_bird":  # all pairs are counted, of which a long text sees some blocks
        fields["attention_bias"] = "qkvo" if c.use_bias else "o"
    if name == "rembert":  # in and out of different widths, never tied
        out = c.output_embedding_size
        fields |= narrow(c, c.input_embedding_size)
        if has_head(c):
            fields |= {"head": "none", "head_bias": False}
            outer += (MaskedHead(d, out, True, True), Head(c.vocab_size, d, out, False, True))
    c.ignore("task_type_vocab_size", "block_size", "num_random_blocks", "embedding_size")
    c.ignore("output_embedding_size", "quant_mode", "rescale_embeddings", "rotary_value")
    return c.card(**fields, outer=outer)

"""Encoders that change a part of BERT's layers: Longformer (arXiv:2004.05150, windows), RoCBert
(how a word sounds and looks), X-MOD (arXiv:2205.06266, adapters), SqueezeBERT (arXiv:2006.11316,
grouped convolutions for matrices), FNet (arXiv:2105.03824, Fourier transforms for attention)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Block
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, idle, matrix, scale, vector
from paramcalc.families.bert import (
    BERT,
    LM_HEAD,
    Kind,
    bert_fields,
    bert_names,
    head_dim,
    root,
)
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Operation, Role, Row, Tensor
from paramcalc.sight import Both

KINDS = {
    "longformer": Kind("longformer", LM_HEAD),
    "roc_bert": Kind("roc_bert"),
    "xmod": Kind("roberta", LM_HEAD),
    "squeezebert": Kind("transformer", norm1="post_attention.layernorm", norm2="output.layernorm"),
    "fnet": Kind("fnet", norm1="fourier.output.LayerNorm"),
}

TYPES: dict[str, dict[str, Any]] = {
    "longformer": dict(BERT, attention_window=512),
    "roc_bert": dict(
        BERT,
        enable_pronunciation=True,
        enable_shape=True,
        pronunciation_embed_dim=768,
        pronunciation_vocab_size=910,
        shape_embed_dim=512,
        shape_vocab_size=24858,
        concat_input=True,
    ),
    "xmod": dict(
        BERT,
        pre_norm=False,
        adapter_reduction_factor=2,
        adapter_layer_norm=False,
        languages=["en_XX"],
    ),
    "squeezebert": dict(
        BERT,
        embedding_size=768,
        q_groups=4,
        k_groups=4,
        v_groups=4,
        post_attention_groups=1,
        intermediate_groups=4,
        output_groups=4,
    ),
    "fnet": {k: v for k, v in BERT.items() if k != "num_attention_heads"}
    | dict(vocab_size=32000, type_vocab_size=4),
}


def NAMES(c: Config) -> Names:
    """BERT's under each type's root; what is spelled out below goes by its own name."""
    kind = KINDS[c.model_type]
    found, at = bert_names(c, kind), root(c, kind)
    if c.model_type == "squeezebert":
        found["layers"] = f"{at}encoder.layers"
    if c.model_type == "xmod":
        found["final_norm"] = f"{at}encoder.LayerNorm"
    for name in ("pronunciation_embed", "shape_embed", "map_inputs_layer", "projection"):
        found[name] = f"{at}embeddings.{name}"
    return found


def read(c: Config) -> dict[str, Any]:
    """BERT's frame, and each type's own function."""
    c.strict = True
    pooled = c.model_type in ("squeezebert", "fnet")
    fields = bert_fields(c, KINDS[c.model_type], pooled=pooled)
    own = _OWN[c.model_type](c)
    outer: tuple[Block, ...] = fields.pop("outer") + own.pop("outer", ())
    own["blocks"] = (*(own.get("blocks") or ()), *(fields.pop("blocks") or ())) or None
    return c.card(**fields | own, outer=outer)


def longformer(c: Config) -> dict[str, Any]:
    """A window in every layer, half of it on either side, and a second set of Q, K, V for tokens
    that see everything: none do unless a task says so."""
    n, d = c.size("num_hidden_layers"), c.hidden_size
    rows: list[Row] = []
    for name in ("query_global", "key_global", "value_global"):
        rows.append(matrix(f"attention.self.{name}.weight", "attention", d, d))
        rows.append(vector(f"attention.self.{name}.bias", "attention", d))
    windows = c.per_layer("attention_window", n)
    for window in windows:
        if type(window) is not int or window < 2 or window % 2:
            c.fail("attention_window", window, "must be an even number of tokens")
    c.ignore("onnx_export")
    each: Layers = [{"window": window} for window in windows]
    return {**stack(each), "blocks": (idle(rows),)}


def roc_bert(c: Config) -> dict[str, Any]:
    """Pronunciation and shape, embedded beside the word and joined to it by a matrix."""
    rows: list[Row] = []
    width = c.hidden_size
    for name, on in (("pronunciation", c.enable_pronunciation), ("shape", c.enable_shape)):
        table = getattr(c, f"{name}_vocab_size"), getattr(c, f"{name}_embed_dim")
        rows.append(Tensor(f"{name}_embed", "embedding", table, "lookup"))
        width += table[1] if on else 0
    if c.concat_input:
        rows += linear("map_inputs_layer", "embedding", c.hidden_size, width, bias=True)
    return {"outer": (Rows(tuple(rows)),)}


def xmod(c: Config) -> dict[str, Any]:
    """Two small matrices for each language in each layer, of which one pair runs."""
    d, factor = c.hidden_size, c.adapter_reduction_factor
    if factor < 1 or factor > d:
        c.fail("adapter_reduction_factor", factor, f"must be 1 to {d}")
    small = d // factor
    rows: list[Row] = []
    for number, language in enumerate(c.get("languages", [])):
        own = f"output.adapter_modules.{language}"
        pair: list[Row] = [
            matrix(f"{own}.dense1.weight", "ffn", small, d),
            vector(f"{own}.dense1.bias", "ffn", small),
            matrix(f"{own}.dense2.weight", "ffn", d, small),
            vector(f"{own}.dense2.bias", "ffn", d),
        ]
        rows += idle(pair).items if number else pair
    if c.adapter_layer_norm:
        rows.append(scale("output.adapter_layer_norm.weight", d))
        rows.append(vector("output.adapter_layer_norm.bias", "norm", d))
    c.ignore("adapter_reuse_layer_norm", "ln_before_adapter", "default_language")
    return {"blocks": (Rows(tuple(rows)),), "final_norm": c.pre_norm}


def squeezebert(c: Config) -> dict[str, Any]:
    """Every matrix is a convolution one token wide, in groups."""
    d, ff, every = c.hidden_size, c.intermediate_size, c.num_attention_heads * head_dim(c)
    if c.embedding_size != d:
        c.fail("embedding_size", c.embedding_size, f"must be hidden_size = {d}")
    parts: tuple[tuple[str, Role, int, int, str], ...] = (
        ("attention.query", "attention", d, d, "q_groups"),
        ("attention.key", "attention", d, d, "k_groups"),
        ("attention.value", "attention", d, d, "v_groups"),
        ("post_attention.conv1d", "attention", d, d, "post_attention_groups"),
        ("intermediate.conv1d", "ffn", ff, d, "intermediate_groups"),
        ("output.conv1d", "ffn", d, ff, "output_groups"),
    )
    rows: list[Row] = []
    for name, role, out, into, key in parts:
        groups = getattr(c, key)
        if groups < 1 or into % groups or out % groups:
            c.fail(key, groups, f"must divide {into} and {out}")
        rows.append(Tensor(f"{name}.weight", role, (out, into // groups, 1), "conv"))
        rows.append(vector(f"{name}.bias", role, out))
    for name in ("attention.scores", "attention.values"):
        rows.append(Operation(name, "attention", 2 * every, Both()))
    own = (Rows(tuple(rows)),)
    return {"attention": False, "ffn": False, "norms_per_layer": 2, "blocks": own}


def fnet(c: Config) -> dict[str, Any]:
    """Fourier transforms mix the tokens: no weights, and no matrix products."""
    c.ignore("tpu_short_seq_length", "use_tpu_fourier_optimizations", "num_attention_heads")
    project = linear("projection", "embedding", c.hidden_size, c.hidden_size, bias=True)
    fields = {"attention": False, "n_heads": None, "norms_per_layer": 2}
    return fields | {"outer": (Rows(tuple(project)),)}


_OWN = {
    "longformer": longformer,
    "roc_bert": roc_bert,
    "xmod": xmod,
    "squeezebert": squeezebert,
    "fnet": fnet,
}

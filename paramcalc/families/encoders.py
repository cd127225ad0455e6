"""Encoders that change a part of BERT's layers: LayoutLM, Longformer (arXiv:2004.05150), RoCBert,
X-MOD, SqueezeBERT (grouped convolutions for matrices), FNet (arXiv:2105.03824, Fourier transforms
for attention), ConvBERT (arXiv:2008.02496), DeBERTa (arXiv:2006.03654, 2111.09543)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Pooler
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, idle, matrix, scale, vector
from paramcalc.families.bert import is_causal
from paramcalc.families.bert_names import names
from paramcalc.families.config import Config, Layers, stack
from paramcalc.families.names import Names
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.sight import Both, State

TYPES: dict[str, dict[str, Any]] = {
    "layoutlm": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        max_2d_position_embeddings=1024,
        tie_word_embeddings=True,
    ),
    "longformer": dict(
        attention_window=512,
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        onnx_export=False,
        tie_word_embeddings=True,
    ),
    "roc_bert": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        enable_pronunciation=True,
        enable_shape=True,
        pronunciation_embed_dim=768,
        pronunciation_vocab_size=910,
        shape_embed_dim=512,
        shape_vocab_size=24858,
        concat_input=True,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "xmod": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        pre_norm=False,
        adapter_reduction_factor=2,
        adapter_layer_norm=False,
        adapter_reuse_layer_norm=True,
        ln_before_adapter=True,
        languages=["en_XX"],
        default_language=None,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "squeezebert": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        embedding_size=768,
        q_groups=4,
        k_groups=4,
        v_groups=4,
        post_attention_groups=1,
        intermediate_groups=4,
        output_groups=4,
        tie_word_embeddings=True,
    ),
    "fnet": dict(
        vocab_size=32000,
        hidden_size=768,
        num_hidden_layers=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=4,
        use_tpu_fourier_optimizations=False,
        tpu_short_seq_length=512,
        tie_word_embeddings=True,
    ),
    "convbert": dict(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=2,
        embedding_size=768,
        head_ratio=2,
        conv_kernel_size=9,
        num_groups=1,
        add_cross_attention=False,
        tie_word_embeddings=True,
    ),
    "deberta": dict(
        vocab_size=50265,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
        type_vocab_size=0,
        relative_attention=False,
        max_relative_positions=-1,
        position_biased_input=True,
        pos_att_type=None,
        pooler_hidden_act="gelu",
        legacy=True,
        tie_word_embeddings=True,
    ),
    "deberta-v2": dict(
        vocab_size=128100,
        hidden_size=1536,
        num_hidden_layers=24,
        num_attention_heads=24,
        intermediate_size=6144,
        max_position_embeddings=512,
        type_vocab_size=0,
        relative_attention=False,
        max_relative_positions=-1,
        position_biased_input=True,
        pos_att_type=None,
        pooler_hidden_act="gelu",
        legacy=True,
        tie_word_embeddings=True,
    ),
}

_SQUEEZE = {
    "layers": "transformer.encoder.layers",
    "norm1": "post_attention.layernorm",
    "norm2": "output.layernorm",
    "pooler": "transformer.pooler.dense",
}
_OWN: dict[str, dict[str, str]] = {
    "layoutlm": {"pooler": "layoutlm.pooler.dense"},
    "longformer": {"head": "lm_head.decoder"},
    "squeezebert": _SQUEEZE,
    "fnet": {
        "norm1": "fourier.output.LayerNorm",
        "pooler": "fnet.pooler.dense",
    },
    "deberta": {
        **{f"attention.{x}": "attention.self.in_proj" for x in "qkv"},
        "attention.q.bias": "attention.self.q_bias",
        "attention.v.bias": "attention.self.v_bias",
        "embedding.project": "deberta.embeddings.embed_proj",
    },
    "deberta-v2": {
        **{
            f"attention.{x}": f"attention.self.{y}_proj"
            for x, y in zip("qkv", ("query", "key", "value"), strict=True)
        },
        "embedding.project": "deberta.embeddings.embed_proj",
    },
}


def NAMES(c: Config) -> Names:
    """BERT's under each type's root."""
    return names(c.model_type) | _OWN.get(c.model_type, {})


def read(c: Config) -> dict[str, Any]:
    """BERT's frame, and each type's own function."""
    fields: dict[str, Any] = {
        "gpt2": True,
        "causal": is_causal(c),
        "embedding_norm": True,
        "final_norm": False,
        "head": "masked",
        "head_bias": True,
        "n_token_types": c.get("type_vocab_size") or None,
    }
    own = OWN[c.model_type](c)
    rows: list[Row] = list(own.pop("rows", ()))
    if not c.get("tie_word_embeddings", True):
        head = own.pop("decoder_bias", "cls.predictions.decoder.bias")
        rows += [vector(head, "head", c.vocab_size)] if head else []
    own.pop("decoder_bias", None)
    c.ignore("tie_word_embeddings", "type_vocab_size")
    outer = (Rows(tuple(rows)),) if rows else ()
    return c.card(**({"n_kv_heads": None, "head_dim": None, "outer": outer} | fields | own))


def layoutlm(c: Config) -> dict[str, Any]:
    """Places on the page: tables for x, y, height and width; a pooler."""
    d, size = c.hidden_size, c.max_2d_position_embeddings
    own = "layoutlm.embeddings"
    rows: list[Row] = [
        Tensor(f"{own}.{x}_position_embeddings.weight", "position", (size, d), "lookup")
        for x in "xyhw"
    ]
    return {"rows": [*rows, *Pooler(d).rows()]}


def longformer(c: Config) -> dict[str, Any]:
    """A window in every layer, and a second set of Q, K, V for the tokens that see everything."""
    n, d = c.num_hidden_layers, c.hidden_size
    rows: list[Row] = []
    for name in ("query_global", "key_global", "value_global"):
        rows.append(matrix(f"attention.self.{name}.weight", "attention", d, d))
        rows.append(vector(f"attention.self.{name}.bias", "attention", d))
    extra = idle(rows)
    windows = c.per_layer("attention_window", n)
    each: Layers = [{"window": w + 1, "blocks": (extra,)} for w in windows]
    c.ignore("onnx_export")
    return {**stack(each), "decoder_bias": "lm_head.decoder.bias"}


def roc_bert(c: Config) -> dict[str, Any]:
    """How a word sounds and looks, embedded beside it and joined to it."""
    d, own = c.hidden_size, "roc_bert.embeddings"
    rows: list[Row] = []
    width = d
    for name, on in (("pronunciation", c.enable_pronunciation), ("shape", c.enable_shape)):
        if on:
            sizes = getattr(c, f"{name}_vocab_size"), getattr(c, f"{name}_embed_dim")
            width += sizes[1]
            rows.append(Tensor(f"{own}.{name}_embed.weight", "embedding", sizes, "lookup"))
    c.ignore("pronunciation_vocab_size", "pronunciation_embed_dim")
    c.ignore("shape_vocab_size", "shape_embed_dim")
    if c.concat_input:
        rows.append(matrix(f"{own}.map_inputs_layer.weight", "embedding", d, width))
        rows.append(vector(f"{own}.map_inputs_layer.bias", "embedding", d))
    return {"rows": rows}


def xmod(c: Config) -> dict[str, Any]:
    """Two small matrices for each language in each layer, of which one pair runs."""
    d = c.hidden_size
    small = int(d // c.adapter_reduction_factor)
    rows: list[Row] = []
    for number, language in enumerate(c.languages):
        own = f"output.adapter_modules.{language}"
        pair: list[Row] = [
            matrix(f"{own}.dense1.weight", "ffn", small, d),
            vector(f"{own}.dense1.bias", "ffn", small),
            matrix(f"{own}.dense2.weight", "ffn", d, small),
            vector(f"{own}.dense2.bias", "ffn", d),
        ]
        rows += idle(pair).items if number else pair
    if c.adapter_layer_norm:
        rows += [scale("output.adapter_layer_norm.weight", d)]
        rows += [vector("output.adapter_layer_norm.bias", "norm", d)]
    c.ignore("adapter_reuse_layer_norm", "ln_before_adapter", "default_language")
    final = bool(c.pre_norm)
    return {
        "blocks": (Rows(tuple(rows)),),
        "final_norm": final,
        "decoder_bias": "lm_head.decoder.bias",
    }


def squeezebert(c: Config) -> dict[str, Any]:
    """Every matrix is a convolution of width 1 in groups."""
    d, ff, heads = c.hidden_size, c.intermediate_size, c.num_attention_heads
    rows: list[Row] = []
    for name, role, out, into, groups in (
        ("attention.query", "attention", d, d, c.q_groups),
        ("attention.key", "attention", d, d, c.k_groups),
        ("attention.value", "attention", d, d, c.v_groups),
        ("post_attention.conv1d", "attention", d, d, c.post_attention_groups),
        ("intermediate.conv1d", "ffn", ff, d, c.intermediate_groups),
        ("output.conv1d", "ffn", d, ff, c.output_groups),
    ):
        if groups < 1 or into % groups:
            c.fail("q_groups", groups, f"must divide {into}")
        shape = (out, into // groups, 1)
        rows.append(
            Tensor(f"{name}.weight", "attention" if role == "attention" else "ffn", shape, "conv")
        )
        rows.append(vector(f"{name}.bias", "attention" if role == "attention" else "ffn", out))
    width = c.share("hidden_size", "num_attention_heads")
    rows.append(Operation("attention.scores", "attention", 2 * heads * width, Both()))
    rows.append(Operation("attention.values", "attention", 2 * heads * width, Both()))
    c.ignore("embedding_size")
    return {
        "attention": False,
        "ffn": False,
        "norms_per_layer": 2,
        "blocks": (Rows(tuple(rows)),),
        "rows": list(Pooler(d).rows()),
    }


def fnet(c: Config) -> dict[str, Any]:
    """Fourier transforms mix the tokens: no weights, and no products that count."""
    d = c.hidden_size
    rows: list[Row] = [
        *linear("fnet.embeddings.projection.weight", "embedding", d, d),
        vector("fnet.embeddings.projection.bias", "embedding", d),
        *Pooler(d).rows(),
    ]
    c.ignore("tpu_short_seq_length", "use_tpu_fourier_optimizations")
    return {"attention": False, "n_heads": None, "norms_per_layer": 2, "rows": rows}


def convbert(c: Config) -> dict[str, Any]:
    """Half of the heads attend; in place of the others, kernels made from each token are applied
    around it. The network may work in groups."""
    d, ratio, kernel = c.hidden_size, c.head_ratio, c.conv_kernel_size
    if ratio < 1:
        c.fail("head_ratio", ratio, "must be at least 1", "raise it")
    total = c.num_attention_heads
    few = 1 if total // ratio < 1 else total // ratio
    ratio = total if total // ratio < 1 else ratio
    width = (d // total // 2) * 2 if d % total else c.share("hidden_size", "num_attention_heads")
    every, own = few * width, "attention.self"
    rows: list[Row] = [
        vector(f"{own}.key_conv_attn_layer.bias", "mixer", every, 1),
        Tensor(f"{own}.key_conv_attn_layer.depthwise.weight", "mixer", (d, 1, kernel), "conv"),
        Tensor(f"{own}.key_conv_attn_layer.pointwise.weight", "mixer", (every, d, 1), "conv"),
        matrix(f"{own}.conv_kernel_layer.weight", "mixer", few * kernel, every),
        vector(f"{own}.conv_kernel_layer.bias", "mixer", few * kernel),
        matrix(f"{own}.conv_out_layer.weight", "mixer", every, d),
        vector(f"{own}.conv_out_layer.bias", "mixer", every),
        Operation(f"{own}.kernels", "mixer", 2 * every * kernel, State()),
    ]
    rows += _attention(c, few, width)
    groups = c.num_groups
    fields: dict[str, Any] = {"attention": False, "norms_per_layer": 2}
    if groups > 1:
        ff = c.intermediate_size
        for name, out, into in (("intermediate.dense", ff, d), ("output.dense", d, ff)):
            shape = (groups, into // groups, out // groups)
            rows.append(Tensor(f"{name}.weight", "ffn", shape, "matmul"))
            rows.append(vector(f"{name}.bias", "ffn", out))
        fields |= {"ffn": False}
    narrow = c.get("embedding_size") or d
    if narrow != d:
        fields |= {"d_embedding": narrow, "d_positions": narrow, "projection_bias": True}
    return fields | {"blocks": (Rows(tuple(rows)),), "decoder_bias": ""}


def _attention(c: Config, heads: int, width: int) -> list[Row]:
    """Q, K and V of the heads that attend, and the output matrix over those and the kernels."""
    d, every = c.hidden_size, heads * width
    rows: list[Row] = []
    for name in ("query", "key", "value"):
        rows.append(matrix(f"attention.self.{name}.weight", "attention", every, d, "column"))
        rows.append(vector(f"attention.self.{name}.bias", "attention", every))
    rows.append(matrix("attention.output.dense.weight", "attention", d, d, "row"))
    rows.append(vector("attention.output.dense.bias", "attention", d))
    rows.append(Operation("attention.scores", "attention", 2 * every, Both()))
    rows.append(Operation("attention.values", "attention", 2 * every, Both()))
    return rows


def deberta(c: Config) -> dict[str, Any]:
    """Disentangled attention: content meets position by tables of relative distances.

    A token meets each of the 2 k distances once for every term of ``pos_att_type``.
    """
    v2, d, n = c.model_type == "deberta-v2", c.hidden_size, c.max_position_embeddings
    kinds = c.get("pos_att_type") or []
    terms = [x.strip() for x in kinds.split("|")] if isinstance(kinds, str) else list(kinds)
    rows: list[Row] = []
    inner: list[Row] = []
    fields: dict[str, Any] = {"attention_bias": "qkvo" if v2 else "qvo"}
    if c.relative_attention:
        span = c.max_relative_positions if c.max_relative_positions >= 1 else n
        buckets = c.get("position_buckets", -1) if v2 else -1
        size = 2 * (buckets if buckets > 0 else span)
        rows.append(
            Tensor("deberta.encoder.rel_embeddings.weight", "position", (size, d), "lookup")
        )
        if v2 and "layer_norm" in str(c.get("norm_rel_ebd", "none")):
            rows += [scale("deberta.encoder.LayerNorm.weight", d)]
            rows += [vector("deberta.encoder.LayerNorm.bias", "norm", d)]
        inner += _relative(c, v2, terms)
        met = sum(term in terms for term in ("c2p", "p2c"))
        if met:
            inner.append(Operation("attention.distances", "attention", 2 * d * size * met, State()))
    if v2 and c.get("conv_kernel_size", 0) > 0:
        shape = (d, d // c.get("conv_groups", 1), c.get("conv_kernel_size", 0))
        rows += [Tensor("deberta.encoder.conv.conv.weight", "mixer", shape, "conv")]
        rows += [vector("deberta.encoder.conv.conv.bias", "mixer", d)]
        rows += [scale("deberta.encoder.conv.LayerNorm.weight", d)]
        rows += [vector("deberta.encoder.conv.LayerNorm.bias", "norm", d)]
    width = c.get("embedding_size") or d
    if width != d:
        fields |= {"d_embedding": width, "d_positions": width}
    if not c.get("position_biased_input", True):
        fields["positions"] = "none"
    if inner:
        fields["blocks"] = (Rows(tuple(inner)),)
    c.ignore("legacy", "pooler_hidden_size", "share_att_key", "conv_act", "pooler_hidden_act")
    return fields | {"rows": rows}


def _relative(c: Config, v2: bool, terms: list[str]) -> list[Row]:
    """Matrices for the distances, unless they share those of the content. They run over the table
    once a sequence, whatever its length."""
    d = c.hidden_size
    if v2 and c.get("share_att_key", False):
        return []
    found: list[Row] = []
    for term, name, bias in (
        ("c2p", "pos_key_proj" if v2 else "pos_proj", v2),
        ("p2c", "pos_query_proj" if v2 else "pos_q_proj", True),
    ):
        if term in terms:
            own = f"attention.self.{name}"
            found.append(Tensor(f"{own}.weight", "attention", (d, d), "matmul", runs=0))
            found += [vector(f"{own}.bias", "attention", d)] if bias else []
    return found


OWN = {
    "layoutlm": layoutlm,
    "longformer": longformer,
    "roc_bert": roc_bert,
    "xmod": xmod,
    "squeezebert": squeezebert,
    "fnet": fnet,
    "convbert": convbert,
    "deberta": deberta,
    "deberta-v2": deberta,
}

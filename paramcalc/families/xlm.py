"""XLM (arXiv:1901.07291) and XLNet (arXiv:1906.08237): BERT's kin with positions of their own; CPM-Ant
(a decoder that reads a prompt both ways)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.sight import Both

TYPES: dict[str, dict[str, Any]] = {
    "xlm": dict(
        vocab_size=30145,
        gelu_activation=True,
        sinusoidal_embeddings=False,
        causal=False,
        asm=False,
        n_langs=1,
        use_lang_emb=True,
        max_position_embeddings=512,
        unk_index=3,
        mask_index=5,
        is_encoder=True,
        start_n_top=5,
        end_n_top=5,
        tie_word_embeddings=True,
        hidden_size=2048,
        num_attention_heads=16,
        num_hidden_layers=12,
    ),
    "xlnet": dict(
        vocab_size=32000,
        ff_activation="gelu",
        attn_type="bi",
        mem_len=512,
        reuse_len=None,
        use_mems_eval=True,
        use_mems_train=False,
        bi_data=False,
        clamp_len=-1,
        same_length=False,
        start_n_top=5,
        end_n_top=5,
        tie_word_embeddings=True,
        hidden_size=1024,
        num_attention_heads=16,
        num_hidden_layers=24,
        intermediate_size=4096,
        head_dim=None,
    ),
    "cpmant": dict(
        vocab_size=30720,
        hidden_size=4096,
        num_attention_heads=32,
        num_hidden_layers=48,
        position_bias_num_buckets=512,
        position_bias_max_distance=2048,
        prompt_types=32,
        prompt_length=32,
        segment_types=32,
        tie_word_embeddings=True,
        intermediate_size=10240,
        head_dim=128,
    ),
}

KEYS = {
    "hidden_size": ("emb_dim", "d_model"),
    "num_hidden_layers": ("n_layers", "n_layer"),
    "num_attention_heads": ("n_heads", "n_head"),
    "intermediate_size": ("dim_ff", "d_inner"),
    "head_dim": ("dim_head", "d_head"),
    "vocab_size": ("n_words", "n_token"),
}

_XLM = {
    "embedding": "transformer.embeddings",
    "embedding_norm": "transformer.layer_norm_emb",
    "positions": "transformer.position_embeddings",
    "head": "pred_layer.proj",
    "head.bias": "pred_layer.proj.bias",
    "norm1": "transformer.layer_norm1.{i} ^",
    "norm1.bias": "transformer.layer_norm1.{i}.bias !^",
    "norm2": "transformer.layer_norm2.{i} ^",
    "norm2.bias": "transformer.layer_norm2.{i}.bias !^",
}
for _part, _name in (("q", "q_lin"), ("k", "k_lin"), ("v", "v_lin"), ("o", "out_lin")):
    _XLM[f"attention.{_part}"] = f"transformer.attentions.{{i}}.{_name} ^"
    _XLM[f"attention.{_part}.bias"] = f"transformer.attentions.{{i}}.{_name}.bias !^"
for _part, _name in (("up", "lin1"), ("down", "lin2")):
    _XLM[f"ffn.{_part}"] = f"transformer.ffns.{{i}}.{_name} ^"
    _XLM[f"ffn.{_part}.bias"] = f"transformer.ffns.{{i}}.{_name}.bias !^"
_CPM = "self_att.self_attention"
_OWN: dict[str, dict[str, str]] = {
    "xlm": _XLM,
    "xlnet": {
        "layers": "transformer.layer",
        "embedding": "transformer.word_embedding",
        "head": "lm_loss",
        "head.bias": "lm_loss.bias",
        "norm1": "rel_attn.layer_norm",
        "norm2": "ff.layer_norm",
        "ffn.up": "ff.layer_1",
        "ffn.down": "ff.layer_2",
    },
    "cpmant": {
        "layers": "cpmant.encoder.layers",
        "final_norm": "cpmant.encoder.output_layernorm",
        "head": "lm_head",
        "norm1": "self_att.layernorm_before_attention",
        "norm2": "ffn.layernorm_before_ffn",
        **{f"attention.{x}": f"{_CPM}.project_{x}" for x in "qkv"},
        "attention.o": f"{_CPM}.attention_out",
        "ffn.gate": "ffn.ffn.w_in.w_0",
        "ffn.up": "ffn.ffn.w_in.w_1",
        "ffn.down": "ffn.ffn.w_out",
        "embedding": "cpmant.input_embedding",
    },
}


def NAMES(c: Config) -> Names:  # noqa: N802
    """XLM keeps the parts of a layer in lists of their own."""
    return _OWN[c.model_type]


def read(c: Config) -> dict[str, Any]:
    """Each by its own function."""
    return {"xlm": xlm, "xlnet": xlnet, "cpmant": cpmant}[c.model_type](c)


def xlm(c: Config) -> dict[str, Any]:
    """BERT's layers of 4 d, a table of languages where there are several."""
    rows: list[Row] = []
    if c.n_langs > 1 and c.use_lang_emb:
        table = (c.n_langs, c.hidden_size)
        rows.append(Tensor("transformer.lang_embeddings.weight", "embedding", table, "lookup"))
    c.ignore("asm", "causal", "gelu_activation", "sinusoidal_embeddings", "is_encoder")
    c.ignore("start_n_top", "end_n_top", "mask_index", "unk_index", "n_langs", "use_lang_emb")
    return c.card(
        n_kv_heads=None,
        head_dim=None,
        d_ff=None,
        gpt2=True,
        causal=bool(c.causal),
        embedding_norm=True,
        final_norm=False,
        head_bias=True,
        outer=(Rows(tuple(rows)),) if rows else (),
    )


def xlnet(c: Config) -> dict[str, Any]:
    """Transformer-XL's attention: Q, K, V, O and one for distances, each (d, heads, width), and
    three vectors added to the queries."""
    d, heads = c.hidden_size, c.num_attention_heads
    width = c.get("head_dim") or c.share("hidden_size", "num_attention_heads")
    own = "rel_attn"
    shape = (d, heads, width)
    rows: list[Row] = [Tensor(f"{own}.{x}", "attention", shape, "matmul") for x in "qkvo"]
    rows.append(Tensor(f"{own}.r", "attention", shape, "matmul", runs=0))
    rows += [
        vector(f"{own}.{x}", "attention", heads, width)
        for x in ("r_r_bias", "r_s_bias", "r_w_bias")
    ]
    rows.append(vector(f"{own}.seg_embed", "attention", 2, heads, width))
    rows += _work(heads * width)
    mask = vector("transformer.mask_emb", "embedding", 1, 1, d)
    c.ignore(*XLNET)
    return c.card(
        n_heads=None,
        n_kv_heads=None,
        head_dim=None,
        context=c.get("max_position_embeddings") or None,
        attention=False,
        norms_per_layer=2,
        norm="layer",
        ffn_bias=True,
        final_norm=False,
        head_bias=True,
        causal=False,
        outer=(Rows((mask,)),),
        blocks=(Rows(tuple(rows)),),
    )


XLNET = (
    "attn_type",
    "bi_data",
    "clamp_len",
    "end_n_top",
    "ff_activation",
    "mem_len",
    "reuse_len",
    "same_length",
    "start_n_top",
    "use_mems_eval",
    "use_mems_train",
    "untie_r",
)


def _work(every: int) -> list[Row]:
    return [
        Operation("attention.scores", "attention", 2 * every, Both()),
        Operation("attention.distances", "attention", 2 * every, Both()),
        Operation("attention.values", "attention", 2 * every, Both()),
    ]


def cpmant(c: Config) -> dict[str, Any]:
    """Prompts have rows in the embedding, segments and distances tables of their own; the head is
    a matrix of its own whatever the config says of tying."""
    d, heads = c.hidden_size, c.num_attention_heads
    types, length = c.prompt_types, c.prompt_length
    distances = c.segment_types**2 + c.position_bias_num_buckets
    rows: list[Row] = [
        Tensor("cpmant.segment_embedding.weight", "embedding", (c.segment_types, d), "lookup"),
        Tensor(
            "cpmant.position_bias.relative_attention_bias", "position", (distances, heads), "lookup"
        ),
        Tensor("lm_head.weight", "head", (c.vocab_size, d), "matmul", "vocab"),
    ]
    c.ignore("position_bias_max_distance", "tie_word_embeddings")
    return c.card(
        n_kv_heads=None,
        vocab_size=c.vocab_size + types * length,
        gated_ffn=True,
        head="none",
        tie_embeddings=False,
        outer=(Rows(tuple(rows)),),
    )

"""XLM (arXiv:1901.07291): BERT's layers with a norm after the embedding, a table of languages where
there are several, and the parts of a layer in lists of their own."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows
from paramcalc.families.config import Config
from paramcalc.ledger import Tensor

_PARTS = {
    "norm1": "layer_norm1.{i}",
    "norm2": "layer_norm2.{i}",
    **{f"attention.{x}": f"attentions.{{i}}.{x}_lin" for x in "qkv"},
    "attention.o": "attentions.{i}.out_lin",
    "ffn.up": "ffns.{i}.lin1",
    "ffn.down": "ffns.{i}.lin2",
}
NAMES = {
    "embedding": "transformer.embeddings",
    "embedding_norm": "transformer.layer_norm_emb",
    "positions": "transformer.position_embeddings",
    "languages": "transformer.lang_embeddings",
    "head": "pred_layer.proj",
    **{row: f"transformer.{path} ^" for row, path in _PARTS.items()},
    **{f"{row}.bias": f"transformer.{path}.bias ^" for row, path in _PARTS.items()},
}

TYPES: dict[str, dict[str, Any]] = {
    "xlm": dict(
        vocab_size=30145,
        hidden_size=2048,
        num_hidden_layers=12,
        num_attention_heads=16,
        max_position_embeddings=512,
        causal=False,
        asm=False,
        n_langs=1,
        use_lang_emb=True,
        tie_word_embeddings=True,
    ),
}

KEYS = {"hidden_size": ("emb_dim",), "vocab_size": ("n_words",)}


def read(c: Config) -> dict[str, Any]:
    """Sinusoidal positions are stored as learned ones are."""
    c.ignore("gelu_activation", "sinusoidal_embeddings", "is_encoder", "mask_index", "unk_index")
    c.ignore("start_n_top", "end_n_top", "bos_index", "eos_index", "pad_index")
    if c.asm:
        c.fail("asm", c.asm, "an adaptive softmax is not read", "set it to false")
    outer: tuple[Rows, ...] = ()
    n = c.size("n_langs")
    if c.use_lang_emb and n > 1:
        table = Tensor("languages", "embedding", (n, c.hidden_size), "lookup")
        outer = (Rows((table,)),)
    return c.card(
        n_kv_heads=None,
        head_dim=None,
        d_ff=None,
        gpt2=True,
        causal=c.causal,
        embedding_norm=True,
        final_norm=False,
        head_bias=True,
        outer=outer,
    )

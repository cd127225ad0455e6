"""XLNet (arXiv:1906.08237): Transformer-XL's attention, whose queries meet keys and, with another
matrix and other biases, the distances to them; a memory of earlier text in place of a cache."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.sight import Both, Causal, Sight, Window

NAMES = {
    "layers": "transformer.layer",
    "embedding": "transformer.word_embedding",
    "head": "lm_loss",
    "norm1": "rel_attn.layer_norm",
    "norm2": "ff.layer_norm",
    "ffn.up": "ff.layer_1",
    "ffn.down": "ff.layer_2",
}

TYPES: dict[str, dict[str, Any]] = {
    "xlnet": dict(
        vocab_size=32000,
        hidden_size=1024,
        num_hidden_layers=24,
        num_attention_heads=16,
        intermediate_size=4096,
        head_dim=None,
        attn_type="bi",
        mem_len=512,
        use_mems_eval=True,
        tie_word_embeddings=True,
    ),
}

KEYS = {
    "vocab_size": ("n_token",),
    "intermediate_size": ("d_inner",),
    "head_dim": ("d_head",),
}


def read(c: Config) -> dict[str, Any]:
    """Norms after attention and after a plain network, biases but in attention; one vector stands
    for a word to guess."""
    c.ignore("max_position_embeddings", "untie_r", "bi_data", "clamp_len", "same_length")
    c.ignore("reuse_len", "use_mems_train", "start_n_top", "end_n_top", "ff_activation")
    reads = {"bi": Both(), "uni": Causal()}
    sight = c.choose("attn_type", c.attn_type, reads)
    mask = Rows((vector("transformer.mask_emb", "embedding", 1, 1, c.hidden_size),))
    return c.card(
        context=None,
        n_kv_heads=None,
        head_dim=None,
        norm="layer",
        ffn_bias=True,
        final_norm=False,
        head_bias=True,
        attention=False,
        norms_per_layer=2,
        blocks=(Rows((*attention(c), *work(c, sight))),),
        outer=(mask,),
    )


def _width(c: Config) -> int:
    """The width of a head: the class takes no other than its share of the stream."""
    share, stated = c.share("hidden_size", "num_attention_heads"), c.get("head_dim")
    if stated not in (None, 0, share):
        c.fail("d_head", stated, f"must be {share}, hidden_size over the heads")
    return share


def attention(c: Config) -> list[Row]:
    """Return the matrices, all (d, heads, width), among them ``r`` for the 2 n distances of a text
    of n tokens (n where it is read one way), and the vectors added to the queries."""
    own, d, heads, width = "rel_attn", c.hidden_size, c.num_attention_heads, _width(c)
    shape = (d, heads, width)
    rows: list[Row] = [Tensor(f"{own}.{x}", "attention", shape) for x in "qkvo"]
    distances = 1 if c.attn_type == "uni" else 2
    rows.append(Tensor(f"{own}.r", "attention", shape, runs=distances))
    rows += [vector(f"{own}.r_{x}_bias", "attention", heads, width) for x in "rsw"]
    rows.append(vector(f"{own}.seg_embed", "attention", 2, heads, width))
    return rows


def work(c: Config, sight: Sight) -> list[Row]:
    """Return the products of attention, and the memory: a layer's input, not its keys and values,
    of the last ``mem_len`` tokens. Read both ways, a query meets all 2 n distances."""
    wide = 2 * c.num_attention_heads * _width(c)
    distances = wide if c.attn_type == "uni" else 2 * wide
    rows: list[Row] = [
        Operation("attention.scores", "attention", wide, sight),
        Operation("attention.distances", "attention", distances, sight),
        Operation("attention.values", "attention", wide, sight),
    ]
    most = c.get("mem_len", 0)
    if c.use_mems_eval:
        rows.append(Cache("memory", c.hidden_size, Window(most) if most else Both()))
    return rows

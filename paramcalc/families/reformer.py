"""Reformer (arXiv:2001.04451): two streams side by side, local or hashed attention, positions as
the sum of two small tables, a network of its own width."""

from __future__ import annotations

from math import prod
from typing import Any

from paramcalc.blocks.rows import Rows, idle, matrix, scale, vector
from paramcalc.families.config import Config
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.sight import BothWindow, Causal, Chunk, Sight

NAMES = {
    "layers": "reformer.encoder.layers",
    "embedding": "reformer.embeddings.word_embeddings",
}

TYPES: dict[str, dict[str, Any]] = {
    "reformer": dict(
        attn_layers=["local", "lsh", "local", "lsh", "local", "lsh"],
        axial_norm_std=1.0,
        axial_pos_embds=True,
        axial_pos_shape=[64, 64],
        axial_pos_embds_dim=[64, 192],
        chunk_size_lm_head=0,
        hash_seed=None,
        hidden_size=256,
        is_decoder=False,
        local_num_chunks_before=1,
        local_num_chunks_after=0,
        local_attn_chunk_length=64,
        lsh_attn_chunk_length=64,
        lsh_num_chunks_before=1,
        lsh_num_chunks_after=0,
        max_position_embeddings=4096,
        num_attention_heads=12,
        num_buckets=None,
        num_hashes=1,
        vocab_size=320,
        tie_word_embeddings=False,
        intermediate_size=512,
        head_dim=64,
    ),
}

KEYS = {"intermediate_size": ("feed_forward_size",), "head_dim": ("attention_head_size",)}


def read(c: Config) -> dict[str, Any]:
    """Both streams meet in the head, which is twice as wide and never tied."""
    c.strict = True
    d, vocab = c.hidden_size, c.vocab_size
    own = "reformer.embeddings.position_embeddings"
    outer: list[Row] = []
    shape, dims = c.get("axial_pos_shape", []), c.get("axial_pos_embds_dim", [])
    if c.axial_pos_embds:
        if not all(type(size) is int and size > 0 for size in (*shape, *dims)):
            c.fail("axial_pos_shape", shape, "must be whole numbers")
        if len(shape) != len(dims) or sum(dims) != d:
            c.fail("axial_pos_embds_dim", dims, f"must add up to hidden_size = {d}")
        for number, (size, width) in enumerate(zip(shape, dims, strict=True)):
            axis = [1] * len(shape)
            axis[number] = size
            table = (*axis, width)
            outer.append(Tensor(f"{own}.weights.{number}", "position", table, "lookup"))
        c.ignore("max_position_embeddings")
    else:
        table = (c.max_position_embeddings, d)
        outer.append(Tensor(f"{own}.embedding.weight", "position", table, "lookup"))
    outer += [
        scale("reformer.encoder.layer_norm.weight", 2 * d),
        vector("reformer.encoder.layer_norm.bias", "norm", 2 * d),
        matrix("lm_head.decoder.weight", "head", vocab, 2 * d, "vocab"),
        vector("lm_head.decoder.bias", "head", vocab),
        *idle([vector("lm_head.bias", "head", vocab)]).items,  # a second one, never added
    ]
    layers: Layers = [{"blocks": (Rows(tuple(_rows(c, hashed))),)} for hashed in hashed_layers(c)]
    c.ignore(*QUIET)
    return c.card(
        n_layers=len(layers),
        n_heads=None,
        n_kv_heads=None,
        head_dim=None,
        d_ff=None,
        context=prod(shape) if c.axial_pos_embds else c.max_position_embeddings,
        causal=c.get("is_decoder", False),
        attention=False,
        ffn=False,
        norm="none",
        head="none",
        tie_embeddings=False,
        outer=(Rows(tuple(outer)),),
        **stack(layers),
    )


def hashed_layers(c: Config) -> list[bool]:
    """Which layers hash: by ``attn_layers``, of which one kind alone goes for any number."""
    words = {"local": False, "lsh": True}
    found = [bool(c.choose("attn_layers", kind, words)) for kind in c.get("attn_layers", [])]
    n = c.size("num_hidden_layers", len(found))
    if len(set(found)) == 1:
        found = found[:1] * n
    if n > len(found):
        c.fail("attn_layers", f"{len(found)} entries", f"there are {n} layers", "make them equal")
    return found[:n]


QUIET = (
    "axial_norm_std",
    "chunk_size_lm_head",
    "hash_seed",
    "local_num_chunks_after",
    "local_num_chunks_before",
    "lsh_num_chunks_after",
    "lsh_num_chunks_before",
    "num_buckets",
    "num_hashes",
    "tie_word_embeddings",
    "local_attn_chunk_length",
    "lsh_attn_chunk_length",
    "num_hidden_layers",
)
CHUNKS = {"lsh": "lsh_attn_chunk_length", "local": "local_attn_chunk_length"}


def _rows(c: Config, hashed: bool) -> list[Row]:
    """Hashed attention shares one matrix for Q and K; both see chunks and their neighbours."""
    d, every, ff = c.hidden_size, c.num_attention_heads * c.head_dim, c.intermediate_size
    own = "attention.self_attention"
    names = ("query_key", "value") if hashed else ("query", "key", "value")
    rows: list[Row] = [matrix(f"{own}.{x}.weight", "attention", every, d) for x in names]
    rows += [
        matrix("attention.output.dense.weight", "attention", d, every),
        scale("attention.layer_norm.weight", d),
        vector("attention.layer_norm.bias", "norm", d),
        scale("feed_forward.layer_norm.weight", d),
        vector("feed_forward.layer_norm.bias", "norm", d),
        matrix("feed_forward.dense.dense.weight", "ffn", ff, d),
        vector("feed_forward.dense.dense.bias", "ffn", ff),
        matrix("feed_forward.output.dense.weight", "ffn", d, ff),
        vector("feed_forward.output.dense.bias", "ffn", d),
    ]
    kind = "lsh" if hashed else "local"
    chunk = getattr(c, CHUNKS[kind])
    around = 1 + c.get(f"{kind}_num_chunks_before", 1) + c.get(f"{kind}_num_chunks_after", 0)
    hashes = c.get("num_hashes", 1) if hashed else 1
    work = 2 * every * hashes
    sight: Sight = BothWindow(chunk * around)
    if c.get("is_decoder", False):
        sight = Chunk(chunk * around) if not hashed else Causal()
    rows += [Operation(f"{own}.{x}", "attention", work, sight) for x in ("scores", "values")]
    return rows

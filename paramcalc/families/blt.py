"""Byte Latent Transformer (arXiv:2412.09871): bytes instead of tokens. A small model of bytes cuts
the text into patches, a local encoder gathers the bytes of each, the latent transformer runs once a
patch, and a local decoder spells bytes again. Tables of hashed groups of bytes add to each byte.

A token here is a byte. How long patches are depends on the text; the work of the latent transformer
is counted at the file's ``patch_size`` bytes each, and the reading says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from paramcalc.blocks import Attention, Block, FeedForward, Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.ledger import Cache, Operation, Role, Row, Tensor
from paramcalc.sight import Causal, State, Window

_STACKS = ("patcher", "local_encoder", "global_transformer", "local_decoder")
_LAYER = {
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
    **{f"attention.{x}": f"self_attn.{x}_proj" for x in "qkvo"},
    **{f"ffn.{x}": f"mlp.{x}_proj" for x in ("gate", "up", "down")},
}
_CROSS = {**{x: f"{x}_proj" for x in "qkvo"}, "q_norm": "q_norm", "k_norm": "k_norm"}

NAMES = {
    "embedding": "model.local_encoder.embed_tokens",
    "hashes": "model.encoder_hash_tok_embedding",
    "head": "lm_head",
    "local_decoder.norm": "model.local_decoder.norm",
    "patcher.embedding": "model.patcher.embed_tokens",
    "patcher.norm": "model.patcher.norm",
    "patcher.head": "model.patcher.lm_head",
    "local_encoder.patches": "model.local_encoder.patch_embedding_projection",
    "local_decoder.patches": "model.local_decoder.patch_embedding_projection",
    "global_transformer.in": "model.global_transformer.token_embedding_projection",
    **{
        f"{stack}.{row}": f"model.{stack}.layers.{{i}}.{path} ^"
        for stack in _STACKS
        for row, path in _LAYER.items()
    },
    **{
        f"{stack}.cross_attention.{row}": f"model.{stack}.cross_attn_layers.{{i}}.{path} ^"
        for stack in _STACKS
        for row, path in _CROSS.items()
    },
}

TYPES = {
    "blt": dict(
        vocab_size=260,
        max_position_embeddings=4096,
        patch_in_forward=True,
        patch_size=4,
        patching_mode="entropy",
        local_attention_window_len=512,
        cross_attn_k=2,
        encoder_hash_byte_group_size=None,
        encoder_hash_byte_group_vocab=500002,
        encoder_hash_byte_group_nb_functions=1,
        tie_word_embeddings=False,
    ),
}
_PATCHER = dict(
    vocab_size=260,
    hidden_size=768,
    num_hidden_layers=14,
    num_attention_heads=12,
    num_key_value_heads=None,
    intermediate_size=2048,
    sliding_window=512,
)
_ENCODER = dict(
    vocab_size=260,
    hidden_size=1024,
    num_hidden_layers=1,
    num_attention_heads=16,
    num_key_value_heads=None,
    intermediate_size=None,
    cross_attn_all_layers=False,
    cross_attn_k=2,
)
_GLOBAL = dict(
    hidden_size=2048,
    num_hidden_layers=25,
    num_attention_heads=16,
    num_key_value_heads=None,
    intermediate_size=5632,
)
_DECODER = _ENCODER | dict(
    num_hidden_layers=9,
    intermediate_size=2816,
    cross_attn_all_layers=True,
    hidden_size_global=2048,
)


def read(c: Config) -> dict[str, Any]:
    """Four stacks in the order in which they run, and what stands between them."""
    c.strict = True
    c.ignore("patching_batch_size", "max_patch_length")
    parts = (_PATCHER, _ENCODER, _GLOBAL, _DECODER)
    keys = ("patcher_config", "encoder_config", "global_config", "decoder_config")
    patcher, encoder, latent, decoder = map(c.part, keys, parts)
    for part in (patcher, encoder, latent, decoder):
        part.ignore("max_position_embeddings", "tie_word_embeddings", "head_dim", "vocab_size")
        part.ignore("hidden_size_global", "sliding_window", "encoder_cross_output_size")
    window, size = c.get("local_attention_window_len", 0), _bytes_a_patch(c)
    stacks: list[tuple[str, Config, list[Row]]] = []
    if c.patch_in_forward:
        rows = _layer("patcher", patcher, patcher.get("sliding_window", 0))
        stacks.append(("patcher", patcher, rows))
    else:
        c.parts.pop("patcher_config")
    outer = [*_tables(c, encoder, decoder), *_ends(c, patcher, encoder, latent, decoder, size)]
    for name, part in (("local_encoder", encoder), ("local_decoder", decoder)):
        rows, crossing = _layer(name, part, window), _cross(name, part, size)
        (rows if part.cross_attn_all_layers else outer).extend(crossing)
        stacks.append((name, part, rows))
    slow = list(_once_a_patch(_layer("global_transformer", latent, 0), 1, size))
    stacks.insert(-1, ("global_transformer", latent, slow))
    groups = [
        dict(
            label=name.replace("_", "-"), repeat=part.num_hidden_layers, blocks=(Rows(tuple(rows)),)
        )
        for name, part, rows in stacks
        if part.num_hidden_layers > 0
    ]
    tied = bool(c.tie_word_embeddings)
    return dict(
        d_model=(decoder if tied else encoder).hidden_size,
        vocab_size=c.vocab_size if tied else encoder.vocab_size,
        n_layers=sum(group["repeat"] for group in groups),
        context=c.max_position_embeddings,
        attention=False,
        ffn=False,
        norms_per_layer=0,
        final_norm=False,
        head="none",  # of a size of its own, among the tables
        layers=groups,
        outer=(Rows(tuple(outer)),),
    )


def _bytes_a_patch(c: Config) -> int:
    """Patches by entropy are taken to be as long as the file says; without it each is a byte."""
    size = c.get("patch_size", 4)
    if not c.patch_in_forward or c.patching_mode != "entropy":
        return 1
    if type(size) is not int or size < 1:
        c.fail("patch_size", size, "must be at least 1")
    c.assumed.append(f"a patch is {size} bytes: how long patches are depends on the text")
    return int(size)


def _layer(name: str, c: Config, window: int) -> list[Row]:
    """Llama's layer."""
    d, heads = c.hidden_size, c.num_attention_heads
    width = c.share("hidden_size", "num_attention_heads")
    kv = c.whole("num_key_value_heads", heads)
    sight = Window(window) if window else Causal()
    blocks: tuple[Block, ...] = (
        Norm(f"{name}.norm1", (d,), False),
        Norm(f"{name}.norm2", (d,), False),
        Attention(f"{name}.attention", d, heads, kv, width, width, sight),
        FeedForward(f"{name}.ffn", d, c.whole("intermediate_size", 8 * d // 3), True),
    )
    return [row for block in blocks for row in block.rows()]


def _cross(name: str, c: Config, size: int) -> Iterator[Row]:
    """Patches ask for their bytes (encoder), or bytes for their patch (decoder): ``cross_attn_k``
    vectors a patch. A byte meets those of its own patch alone."""
    d, heads, k = c.hidden_size, c.num_attention_heads, c.cross_attn_k
    width = c.share("hidden_size", "num_attention_heads")
    kv = c.whole("num_key_value_heads", heads)
    own, asking = f"{name}.cross_attention", name == "local_encoder"
    q, keys, values, o = (
        list(linear(f"{own}.{part}", "attention", out, into, shard="column"))
        for part, out, into in (
            ("q", heads * width, d),
            ("k", kv * width, d),
            ("v", kv * width, d),
            ("o", d, heads * width),
        )
    )
    slow, fast = ([*q, *o], [*keys, *values]) if asking else ([*keys, *values], [*q, *o])
    yield from fast
    yield from _once_a_patch(slow, k, size)
    for part in ("q_norm", "k_norm"):
        yield from Norm(f"{own}.{part}", (d,), False).rows()
    yield Operation(f"{own}.scores", "attention", 2 * heads * width * k, State())
    yield Operation(f"{own}.values", "attention", 2 * heads * width * k, State())


def _once_a_patch(rows: Iterable[Row], times: int, size: int) -> Iterator[Row]:
    """Rows that run ``times`` times a patch of ``size`` bytes: a byte's share of their work, their
    pairs and what they cache."""
    for row in rows:
        if isinstance(row, Tensor) and row.use == "matmul":
            yield row._replace(stream="tower")
            yield Operation(f"{row.name}.share", row.role, row.flops * times // size, State())
        elif isinstance(row, Operation):
            yield row._replace(flops_per_pair=row.flops_per_pair // size**2)
        elif isinstance(row, Cache):
            yield row._replace(per_position=row.per_position // size)
        else:
            yield row


def _tables(c: Config, encoder: Config, decoder: Config) -> Iterator[Row]:
    """The hashed groups of bytes, one table for all lengths and functions, and the head."""
    groups = c.get("encoder_hash_byte_group_size", 0) or [3, 4, 5, 6, 7, 8]
    if not isinstance(groups, list):
        c.fail("encoder_hash_byte_group_size", groups, "must be a list")
    rows = c.encoder_hash_byte_group_vocab * c.encoder_hash_byte_group_nb_functions * len(groups)
    yield Tensor("hashes", "embedding", (rows, encoder.hidden_size), "lookup", "vocab")
    stored = 0 if c.tie_word_embeddings else 1
    shape = (c.vocab_size, decoder.hidden_size)
    yield Tensor("head", "head", shape, "matmul", "vocab", stored, stored, 1)


def _ends(
    c: Config, patcher: Config, encoder: Config, latent: Config, decoder: Config, size: int
) -> Iterator[Row]:
    """What stands before and after the stacks."""
    yield from Norm("local_decoder.norm", (decoder.hidden_size,), False).rows()
    if c.patch_in_forward:
        shape = (patcher.vocab_size, patcher.hidden_size)
        yield Tensor("patcher.embedding", "embedding", shape, "lookup", "vocab")
        yield from Norm("patcher.norm", (patcher.hidden_size,), False).rows()
        yield Tensor("patcher.head", "head", shape, "matmul", "vocab")
    gathered = encoder.hidden_size * c.cross_attn_k
    times = encoder.num_hidden_layers if encoder.cross_attn_all_layers else 1
    role: Role = "residual"
    out = encoder.hidden_size * encoder.cross_attn_k
    rows = linear("local_encoder.patches", role, out, encoder.hidden_size)
    yield from _once_a_patch(rows, times, size)
    if gathered != latent.hidden_size:
        rows = linear("global_transformer.in", role, latent.hidden_size, gathered)
        yield from _once_a_patch(rows, 1, size)
    out = decoder.hidden_size * decoder.cross_attn_k
    rows = linear("local_decoder.patches", role, out, decoder.hidden_size_global)
    yield from _once_a_patch(rows, 1, size)

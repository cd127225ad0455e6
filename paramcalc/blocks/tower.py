"""Towers: what turns images or sound into vectors for a language model.

A tower is counted and never part of a text's FLOPs: its rows run on the stream ``tower``, and its
attention has no rows of its own. Rows carry the names they are stored under, ``{i}`` for a layer.
Each function yields a tower's tensors from the sizes it is given; ``placed`` puts them under a
prefix as one block.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paramcalc.blocks.rows import Rows
from paramcalc.ledger import Tensor, Use
from paramcalc.numbers import Num

Tensors = Iterator[Tensor]


def weight(name: str, *shape: Num, times: Num = 1, use: Use = "matmul") -> Tensor:
    """Return one tensor of a tower, stored ``times`` times."""
    return Tensor(name, "tower", shape, use, "replicated", times, times, times, "tower")


def dense(
    name: str, *shape: Num, bias: bool = True, times: Num = 1, use: Use = "matmul"
) -> Tensors:
    """Yield the weight of a linear map or convolution, (out, in, ...), and its bias."""
    yield weight(f"{name}.weight", *shape, times=times, use=use)
    if bias:
        yield weight(f"{name}.bias", shape[0], times=times, use="bias")


def norm(name: str, width: Num, *, bias: bool = True, times: Num = 1) -> Tensors:
    """Yield a norm's scale, and a LayerNorm's shift."""
    yield weight(f"{name}.weight", width, times=times, use="scale")
    if bias:
        yield weight(f"{name}.bias", width, times=times, use="bias")


def within(prefix: str, *parts: Iterable[Tensor]) -> Tensors:
    """Yield the tensors that are there at all, their names under a prefix."""
    for part in parts:
        for tensor in part:
            if not (type(tensor.copies) is int and tensor.copies == 0):
                yield tensor._replace(name=prefix + tensor.name)


def placed(prefix: str, *parts: Iterable[Tensor]) -> Rows:
    """Return the tensors as one block, their names under a prefix."""
    return Rows(tuple(within(prefix, *parts)))


def encoder_layers(name: str, width: Num, d_ff: Num, times: Num) -> Tensors:
    """Yield ``times`` layers of a vision transformer (Dosovitskiy et al. 2020) as CLIP and SigLIP
    store them: two LayerNorms, four matrices, a plain network, a bias in each."""
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        yield from dense(f"{name}.self_attn.{part}", width, width, times=times)
    for part in ("layer_norm1", "layer_norm2"):
        yield from norm(f"{name}.{part}", width, times=times)
    yield from dense(f"{name}.mlp.fc1", d_ff, width, times=times)
    yield from dense(f"{name}.mlp.fc2", width, d_ff, times=times)


def siglip(
    width: Num, d_ff: Num, layers: Num, channels: Num, patch: Num, places: Num, head: bool
) -> Tensors:
    """Yield SigLIP's vision model (arXiv:2303.15343): patches, a place for each, the layers, and
    with ``head`` a learned probe that pools them by attention."""
    yield from dense("embeddings.patch_embedding", width, channels, patch, patch, use="conv")
    yield weight("embeddings.position_embedding.weight", places, width, use="lookup")
    yield from encoder_layers("encoder.layers.{i}", width, d_ff, layers)
    yield from norm("post_layernorm", width)
    if head:
        yield weight("head.probe", 1, 1, width, use="lookup")
        yield weight("head.attention.in_proj_weight", 3 * width, width)
        yield weight("head.attention.in_proj_bias", 3 * width, use="bias")
        yield from dense("head.attention.out_proj", width, width)
        yield from norm("head.layernorm", width)
        yield from dense("head.mlp.fc1", d_ff, width)
        yield from dense("head.mlp.fc2", width, d_ff)


def clip(width: Num, d_ff: Num, layers: Num, channels: Num, patch: Num, places: Num) -> Tensors:
    """Yield CLIP's vision model (arXiv:2103.00020): a class vector before the patches, which have
    no bias, and a norm on either side of the layers."""
    yield weight("embeddings.class_embedding", width, use="lookup")
    yield from dense(
        "embeddings.patch_embedding", width, channels, patch, patch, bias=False, use="conv"
    )
    yield weight("embeddings.position_embedding.weight", places + 1, width, use="lookup")
    yield from norm("pre_layrnorm", width)
    yield from encoder_layers("encoder.layers.{i}", width, d_ff, layers)
    yield from norm("post_layernorm", width)


def sam(
    width: Num,
    d_ff: Num,
    layers: Num,
    channels: Num,
    patch: Num,
    side: Num,
    out: Num,
    *,
    head_dim: Num,
    n_global: Num,
    window: Num,
    qkv_bias: bool,
    absolute: bool,
    relative: bool,
) -> Tensors:
    """Yield SAM's image encoder (arXiv:2304.02643): ``side`` x ``side`` patches, fused QKV, tables
    of relative places for each axis as long as a layer sees (a window, or in ``n_global`` layers
    the whole image), and a neck of two convolutions to ``out`` channels."""
    if absolute:
        yield weight("pos_embed", 1, side, side, width, use="lookup")
    yield from dense("patch_embed.projection", width, channels, patch, patch, use="conv")
    for part in ("layer_norm1", "layer_norm2"):
        yield from norm(f"layers.{{i}}.{part}", width, times=layers)
    if relative:
        for times, sees in ((layers - n_global, window), (n_global, side)):
            for axis in "hw":
                name = f"layers.{{i}}.attn.rel_pos_{axis}"
                yield weight(name, 2 * sees - 1, head_dim, times=times, use="lookup")
    yield from dense("layers.{i}.attn.qkv", 3 * width, width, bias=qkv_bias, times=layers)
    yield from dense("layers.{i}.attn.proj", width, width, times=layers)
    yield from dense("layers.{i}.mlp.lin1", d_ff, width, times=layers)
    yield from dense("layers.{i}.mlp.lin2", width, d_ff, times=layers)
    yield from dense("neck.conv1", out, width, 1, 1, bias=False, use="conv")
    yield from norm("neck.layer_norm1", out)
    yield from dense("neck.conv2", out, out, 3, 3, bias=False, use="conv")
    yield from norm("neck.layer_norm2", out)


def whisper(width: Num, d_ff: Num, layers: Num, mels: Num, places: Num) -> Tensors:
    """Yield Whisper's encoder (arXiv:2212.04356): two convolutions over time, a place for each
    frame, layers whose K has no bias."""
    yield from dense("conv1", width, mels, 3, use="conv")
    yield from dense("conv2", width, width, 3, use="conv")
    yield weight("embed_positions.weight", places, width, use="lookup")
    for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
        own = part != "k_proj"
        yield from dense(f"layers.{{i}}.self_attn.{part}", width, width, bias=own, times=layers)
    for part in ("self_attn_layer_norm", "final_layer_norm"):
        yield from norm(f"layers.{{i}}.{part}", width, times=layers)
    yield from dense("layers.{i}.fc1", d_ff, width, times=layers)
    yield from dense("layers.{i}.fc2", width, d_ff, times=layers)
    yield from norm("layer_norm", width)

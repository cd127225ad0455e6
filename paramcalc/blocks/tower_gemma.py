"""The towers of Gemma 4: a vision transformer with Gemma's layers, and a conformer for sound.

Their linear maps may carry the four bounds that their inputs and outputs are clipped to, single
values that a checkpoint holds and that are not trained.
"""

from __future__ import annotations

from paramcalc.blocks.tower import Tensors, dense, norm, weight
from paramcalc.numbers import Num

_BOUNDS = ("input_min", "input_max", "output_min", "output_max")


def _clipped(name: str, out: Num, into: Num, times: Num, bounds: bool) -> Tensors:
    """Yield a linear map without a bias, and its bounds."""
    yield weight(f"{name}.linear.weight", out, into, times=times)
    if bounds:
        for bound in _BOUNDS:
            yield weight(f"{name}.{bound}", times=times, use="buffer")


def vision(
    width: Num,
    d_ff: Num,
    layers: Num,
    heads: Num,
    kv_heads: Num,
    head_dim: Num,
    patch: Num,
    places: Num,
    *,
    clipped: bool,
    standardize: bool,
) -> Tensors:
    """Yield the vision tower: patches of RGB as a matrix, a table of places for each axis, layers
    with four norms, gated networks and norms on the heads of Q and K."""
    yield weight("patch_embedder.position_embedding_table", 2, places, width, use="lookup")
    yield from dense("patch_embedder.input_proj", width, 3 * patch * patch, bias=False)
    own, q, kv = "encoder.layers.{i}", heads * head_dim, kv_heads * head_dim
    for part, out, into in (
        ("self_attn.q_proj", q, width),
        ("self_attn.k_proj", kv, width),
        ("self_attn.v_proj", kv, width),
        ("self_attn.o_proj", width, q),
        ("mlp.gate_proj", d_ff, width),
        ("mlp.up_proj", d_ff, width),
        ("mlp.down_proj", width, d_ff),
    ):
        yield from _clipped(f"{own}.{part}", out, into, layers, clipped)
    for part in ("q_norm", "k_norm"):
        yield from norm(f"{own}.self_attn.{part}", head_dim, bias=False, times=layers)
    for part in ("input", "post_attention", "pre_feedforward", "post_feedforward"):
        yield from norm(f"{own}.{part}_layernorm", width, bias=False, times=layers)
    if standardize:
        yield weight("std_bias", width, use="buffer")
        yield weight("std_scale", width, use="buffer")


def conformer(
    width: Num,
    layers: Num,
    heads: Num,
    kernel: Num,
    channels: tuple[Num, Num],
    out: Num,
    clipped: bool,
) -> Tensors:
    """Yield the audio tower, a conformer (arXiv:2303.01037): two convolutions that halve time and
    pitch, layers of attention with relative places between half-step networks and a convolution
    over time, and a matrix to ``out``."""
    first, second = channels
    own = "subsample_conv_projection"
    for number, (wide, into) in enumerate(((first, 1), (second, first))):
        yield from dense(f"{own}.layer{number}.conv", wide, into, 3, 3, bias=False, use="conv")
        yield from norm(f"{own}.layer{number}.norm", wide, bias=False)
    yield from dense(f"{own}.input_proj_linear", width, first // 4 * second, bias=False)
    own = "layers.{i}"
    for half in ("feed_forward1", "feed_forward2"):
        yield from _clipped(f"{own}.{half}.ffw_layer_1", 4 * width, width, layers, clipped)
        yield from _clipped(f"{own}.{half}.ffw_layer_2", width, 4 * width, layers, clipped)
        yield from norm(f"{own}.{half}.pre_layer_norm", width, bias=False, times=layers)
        yield from norm(f"{own}.{half}.post_layer_norm", width, bias=False, times=layers)
    all_heads = heads * (width // heads)
    for part in ("q_proj", "k_proj", "v_proj"):
        yield from _clipped(f"{own}.self_attn.{part}", all_heads, width, layers, clipped)
    yield from _clipped(f"{own}.self_attn.post", width, width, layers, clipped)
    yield from dense(f"{own}.self_attn.relative_k_proj", all_heads, width, bias=False, times=layers)
    yield weight(f"{own}.self_attn.per_dim_scale", width // heads, times=layers, use="scale")
    yield from _clipped(f"{own}.lconv1d.linear_start", 2 * width, width, layers, clipped)
    yield from _clipped(f"{own}.lconv1d.linear_end", width, width, layers, clipped)
    name = f"{own}.lconv1d.depthwise_conv1d"
    yield from dense(name, width, 1, kernel, bias=False, times=layers, use="conv")
    for part in ("lconv1d.pre_layer_norm", "lconv1d.conv_norm"):
        yield from norm(f"{own}.{part}", width, bias=False, times=layers)
    for part in ("norm_pre_attn", "norm_post_attn", "norm_out"):
        yield from norm(f"{own}.{part}", width, bias=False, times=layers)
    yield from dense("output_proj", out, width)

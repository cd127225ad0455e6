"""Phi-4-multimodal (arXiv:2503.01743): Phi 3's layers, SigLIP's vision model and a conformer for
sound, each behind projections of its own."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.tower import Tensors, dense, norm, placed, siglip, weight, within
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA
from paramcalc.families.nested import patches, square

NAMES = LLAMA | {
    "attention.q": "self_attn.qkv_proj",
    "attention.k": "self_attn.qkv_proj",
    "attention.v": "self_attn.qkv_proj",
    "ffn.gate": "mlp.gate_up_proj",
    "ffn.up": "mlp.gate_up_proj",
}

TYPES = {
    "phi4_multimodal": dict(
        vocab_size=200064,
        hidden_size=3072,
        intermediate_size=8192,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=8,
        max_position_embeddings=131072,
        tie_word_embeddings=False,
        sliding_window=None,
        vision_config=None,
        audio_config=None,
    ),
}

VISION = dict(
    hidden_size=1152,
    intermediate_size=4304,
    num_hidden_layers=27,
    num_attention_heads=16,
    num_channels=3,
    image_size=448,
    patch_size=14,
)
AUDIO = dict(
    hidden_size=1024,
    intermediate_size=1536,
    num_blocks=24,
    num_attention_heads=16,
    ext_pw_out_channel=1024,
    depthwise_separable_out_channel=1024,
    depthwise_multiplier=1,
    kernel_size=3,
    input_size=80,
    time_reduction=8,
    bias_max_distance=1000,
    bias_symmetric=False,
    nemo_conv_channels=1024,
    downsample_rate=1,
)


def read(c: Config) -> dict[str, Any]:
    """The text layers, then both towers."""
    c.strict = True
    return c.card(
        gated_ffn=True,
        window=c.get("sliding_window", 0) or None,
        outer=(_eyes(c), _ears(c)),
    )


def _eyes(c: Config) -> Rows:
    v, d = c.part("vision_config", VISION), c.hidden_size
    v.ignore("num_attention_heads", "crop_size", "feature_layer")
    width = v.hidden_size
    tower = siglip(
        width,
        v.intermediate_size,
        v.num_hidden_layers,
        v.num_channels,
        square(v, "patch_size"),
        patches(v) ** 2,
        head=True,
    )
    return placed(
        "model.embed_tokens_extend.image_embed.",
        within("img_processor.", tower),
        dense("img_projection_up", d, width),
        dense("img_projection_down", d, d),
        [weight("global_img_feature_extensor", 1, 1, width, use="lookup")],
        [weight("sub_img_feature_extensor", 1, 1, 1, width, use="lookup")],
    )


def _ears(c: Config) -> Rows:
    a, d = c.part("audio_config", AUDIO), c.hidden_size
    a.ignore("nemo_final_size", "chunk_size", "left_chunk", "feature_layer")
    projections: list[Tensors] = []
    for kind in ("speech", "vision_speech"):
        projections.append(dense(f"up_proj_for_{kind}", d, a.hidden_size * a.downsample_rate))
        projections.append(dense(f"down_proj_for_{kind}", d, d))
    return placed("model.embed_tokens_extend.audio_embed.", _conformer(a), *projections)


def _conformer(a: Config) -> Tensors:
    """A conformer (arXiv:2005.08100): convolutions that shorten time by ``time_reduction``, one
    bias for each distance and head, layers of attention and a gated convolution between two gated
    networks."""
    d, n, heads = a.hidden_size, a.num_blocks, a.num_attention_heads
    yield weight("encoder.encoder_embedding.global_mean", a.input_size, use="buffer")
    yield weight("encoder.encoder_embedding.global_invstd", a.input_size, use="buffer")
    yield from _shortening(a)
    buckets = a.bias_max_distance * (1 if a.bias_symmetric else 2)
    name = "encoder.relative_attention_bias_layer.bias_values.weight"
    yield weight(name, buckets, heads, use="lookup")
    own = "encoder.encoders.{i}"
    for half in ("feed_forward_in", "feed_forward_out"):
        yield from norm(f"{own}.{half}.layer_norm", d, times=n)
        yield from dense(f"{own}.{half}.gate_up_proj", 2 * a.intermediate_size, d, times=n)
        yield from dense(f"{own}.{half}.down_proj", d, a.intermediate_size, times=n)
    wide = heads * a.share("hidden_size", "num_attention_heads")
    for part in ("q_proj", "k_proj", "v_proj"):
        yield from dense(f"{own}.self_attn.{part}", wide, d, times=n)
    yield from dense(f"{own}.self_attn.o_proj", d, wide, times=n)
    out, deep = a.ext_pw_out_channel, d * a.depthwise_multiplier
    conv, separable = f"{own}.conv", a.depthwise_separable_out_channel
    yield from norm(f"{conv}.layer_norm", d, times=n)
    yield weight(f"{conv}.glu.b1", 1, out, 1, times=n, use="bias")
    yield weight(f"{conv}.glu.b2", 1, out, 1, times=n, use="bias")
    yield from dense(f"{conv}.glu.ext_pw_conv_1d", 2 * out, d, 1, times=n, use="conv")
    name = f"{conv}.dw_sep_conv_1d"
    yield from dense(f"{name}.dw_conv", deep, 1, a.kernel_size, times=n, use="conv")
    yield from dense(f"{name}.pw_conv", separable, deep, 1, times=n, use="conv")
    yield from dense(f"{conv}.ext_pw_conv_1d", out, d, 1, times=n, use="conv")
    yield from norm(f"{own}.layer_norm_att", d, times=n)
    yield from norm(f"{own}.layer_norm", d, times=n)


def _shortening(a: Config) -> Tensors:
    """One convolution that halves time and pitch, then pairs that do so channel by channel and mix
    the channels."""
    halvings, wide = a.time_reduction.bit_length() - 1, a.nemo_conv_channels
    if halvings < 1:
        a.fail("time_reduction", a.time_reduction, "must be at least 2", "raise it")
    pitches = a.input_size
    for _ in range(halvings):
        pitches = (pitches + 1) // 2
    name = "encoder.embed.conv.{i}"
    yield from dense(name, wide, 1, 3, 3, times=halvings, use="conv")
    yield from dense(name, wide, wide, 1, 1, times=halvings - 1, use="conv")
    yield from dense("encoder.embed.out", a.hidden_size, wide * pitches)

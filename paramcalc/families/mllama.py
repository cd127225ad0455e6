"""Llama 3.2 Vision (arXiv:2407.21783, section 7): Llama's layers with layers of cross attention to
image patches between them, which a text without an image skips, and 8 rows of image tokens after
the vocabulary. The image encoder is two stacks, the second with gates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.blocks import Attention, Block, FeedForward, Norm, Rows
from paramcalc.blocks.tower import Tensors, dense, norm, placed, weight
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.nested import language_model, names_of, patches, square
from paramcalc.families.stacks import stack
from paramcalc.ledger import Row, Tensor
from paramcalc.sight import Both

TYPES: dict[str, dict[str, Any]] = {
    "mllama": dict(text_config=None, vision_config=None),
    "mllama_text_model": dict(
        vocab_size=128256,
        hidden_size=4096,
        num_hidden_layers=40,
        num_attention_heads=32,
        num_key_value_heads=8,
        intermediate_size=14336,
        max_position_embeddings=131072,
        cross_attention_layers=[3, 8, 13, 18, 23, 28, 33, 38],
    ),
}

VISION: dict[str, Any] = dict(
    hidden_size=1280,
    num_hidden_layers=32,
    num_global_layers=8,
    attention_heads=16,
    num_channels=3,
    intermediate_size=5120,
    vision_output_dim=7680,
    image_size=448,
    patch_size=14,
    max_num_tiles=4,
    supported_aspect_ratios=[[1, 1], [1, 2], [1, 3], [1, 4], [2, 1], [2, 2], [3, 1], [4, 1]],
)

_NAMES = LLAMA | {
    "embedding.image_tokens": "model.embed_tokens",
    "cross_attention.q": "cross_attn.q_proj",
    "cross_attention.k": "cross_attn.k_proj",
    "cross_attention.v": "cross_attn.v_proj",
    "cross_attention.o": "cross_attn.o_proj",
    "cross_attention.q_norm": "cross_attn.q_norm",
    "cross_attention.k_norm": "cross_attn.k_norm",
    "cross_attention.scale": "cross_attn_attn_gate !",
    "ffn.scale": "cross_attn_mlp_gate !",
}


def NAMES(c: Config) -> Names:
    """The text model stands one step further in where the class holds the image encoder."""
    if c.model_type == "mllama_text_model":
        return _NAMES
    place = "model.language_model" if _sees(c) else "model"
    return names_of(c, "text_config", "mllama_text_model", place)


def _sees(c: Config) -> bool:
    """Whether the class holds the image encoder; the causal one does not."""
    return c.arch not in ("", "MllamaForCausalLM")


def read(c: Config) -> dict[str, Any]:
    """The text model, and the image encoder where the class has it."""
    if c.model_type == "mllama_text_model":
        return _text(c)
    text, fields = language_model(c, "text_config", "mllama_text_model")
    fields["tie_embeddings"] = False  # no class ties, whatever the file says
    if not _sees(c):
        c.leave_out("vision_config", "vision tower")
        return fields
    v = c.part("vision_config", VISION)
    v.ignore("attention_heads", "num_attention_heads", "intermediate_layers_indices")
    outside = (
        placed("model.vision_model.", _eyes(v)),
        placed("", dense("model.multi_modal_projector", text.hidden_size, v.vision_output_dim)),
    )
    return fields | {"outer": (*fields["outer"], *outside)}


def _text(c: Config) -> dict[str, Any]:
    c.strict = True
    c.ignore("tie_word_embeddings")
    crossing = Rows(tuple(_crossing(c)))
    other = dict(label="image", attention=False, ffn=False, norms_per_layer=0, blocks=(crossing,))
    cross = c.get("cross_attention_layers", TYPES["mllama_text_model"]["cross_attention_layers"])
    extra = Tensor("embedding.image_tokens", "embedding", (8, c.hidden_size), "lookup", "vocab")
    return c.card(
        head_dim=None,
        gated_ffn=True,
        tie_embeddings=False,
        outer=(Rows((extra,)),),
        **stack([other if i in cross else {} for i in range(c.num_hidden_layers)]),
    )


def _crossing(c: Config) -> Iterator[Row]:
    """A layer that reads an image: two norms, attention and a network, and a value that scales
    each. Text alone passes it by: its rows are none of a text's FLOPs, and what it caches grows
    with images."""
    d, width = c.hidden_size, c.share("hidden_size", "num_attention_heads")
    heads, kv_heads = c.num_attention_heads, c.num_key_value_heads
    own = "cross_attention"
    blocks: tuple[Block, ...] = (
        Norm("norm1", (d,), False),
        Norm("norm2", (d,), False),
        Attention(own, d, heads, kv_heads, width, width, Both(), qk_norm="head", cross=True),
        FeedForward("ffn", d, c.intermediate_size, True),
    )
    for row in (row for block in blocks for row in block.rows()):
        if isinstance(row, Tensor):
            yield row._replace(stream="tower")
    yield Tensor(f"{own}.scale", "attention", (1,), "scale", stream="tower")
    yield Tensor("ffn.scale", "ffn", (1,), "scale", stream="tower")


def _eyes(v: Config) -> Tensors:
    """Patches and a class vector with places inside a tile, tiles with places in a page."""
    d, places = v.hidden_size, patches(v) ** 2 + 1
    side, tiles = square(v, "patch_size"), v.max_num_tiles
    ratios = len(v.supported_aspect_ratios or VISION["supported_aspect_ratios"]) + 1
    yield weight("class_embedding", d, use="lookup")
    yield from dense("patch_embedding", d, v.num_channels, side, side, bias=False, use="conv")
    own = "gated_positional_embedding"
    yield weight(f"{own}.gate", 1, use="scale")
    yield weight(f"{own}.embedding", places, d, use="lookup")
    yield weight(f"{own}.tile_embedding.weight", ratios, tiles * places * d, use="lookup")
    for when in ("pre", "post"):
        own = f"{when}_tile_positional_embedding"
        yield weight(f"{own}.gate", 1, use="scale")
        yield weight(f"{own}.embedding.weight", ratios, tiles * d, use="lookup")
        yield from norm(f"layernorm_{when}", d)
    for own, n in (
        ("transformer", v.num_hidden_layers),
        ("global_transformer", v.num_global_layers),
    ):
        layer = f"{own}.layers.{{i}}"
        if own == "global_transformer":
            yield weight(f"{layer}.gate_attn", 1, times=n, use="scale")
            yield weight(f"{layer}.gate_ffn", 1, times=n, use="scale")
        for part in "qkvo":
            yield from dense(f"{layer}.self_attn.{part}_proj", d, d, bias=False, times=n)
        yield from dense(f"{layer}.mlp.fc1", v.intermediate_size, d, times=n)
        yield from dense(f"{layer}.mlp.fc2", d, v.intermediate_size, times=n)
        yield from norm(f"{layer}.input_layernorm", d, times=n)
        yield from norm(f"{layer}.post_attention_layernorm", d, times=n)

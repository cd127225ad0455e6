"""MOSS-Transcribe-Diarize: Whisper's encoder, several of its frames side by side through a network
of two matrices and a norm, and Qwen 3."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.tower import dense, norm, placed, whisper
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.nested import language_model, names_of

TYPES = {
    "moss_transcribe_diarize": dict(
        text_config=None,
        audio_config=None,
        projector_bias=True,
        audio_merge_size=4,
        audio_chunk_size=480000,
        tie_word_embeddings=True,
    ),
}

TEXT = dict(
    hidden_size=1024,
    intermediate_size=3072,
    num_hidden_layers=28,
    num_attention_heads=16,
    num_key_value_heads=8,
    max_position_embeddings=131072,
)
"""The language model of a file that says nothing about it."""

AUDIO = dict(
    num_mel_bins=80,
    num_hidden_layers=24,
    num_attention_heads=16,
    intermediate_size=4096,
    hidden_size=1024,
    max_source_positions=1500,
)
_WHISPERS = {
    "hidden_size": ("d_model",),
    "num_hidden_layers": ("encoder_layers",),
    "num_attention_heads": ("encoder_attention_heads",),
    "intermediate_size": ("encoder_ffn_dim",),
}


def NAMES(c: Config) -> Names:
    """The language model's, one step further in."""
    return names_of(c, "text_config", "qwen3")


def read(c: Config) -> dict[str, Any]:
    """The language model, then what sound passes."""
    c.strict = True
    c.ignore("audio_chunk_size")
    text, fields = language_model(c, "text_config", "qwen3", TEXT)
    a, d, bias = c.part("audio_config", AUDIO, _WHISPERS), text.hidden_size, c.projector_bias
    a.ignore("num_attention_heads", "encoder_attention_heads")
    tower = whisper(
        a.hidden_size,
        a.intermediate_size,
        a.num_hidden_layers,
        a.num_mel_bins,
        a.max_source_positions,
    )
    projector = placed(
        "model.multi_modal_projector.",
        dense("linear_1", d, a.hidden_size * c.audio_merge_size, bias=bias),
        dense("linear_2", d, d, bias=bias),
        norm("norm", d),
    )
    return fields | {"outer": (placed("model.audio_tower.", tower), projector)}

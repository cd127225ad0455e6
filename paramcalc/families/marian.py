"""Marian (arXiv:1804.00344): BART without a norm after the embedding, with sinusoidal positions
that a checkpoint stores, and on request a vocabulary for each language."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows
from paramcalc.families import bart
from paramcalc.families.bart import LARGE, is_alone, root, table
from paramcalc.families.config import Config
from paramcalc.families.names import Names

TYPES: dict[str, dict[str, Any]] = {
    "marian": dict(
        LARGE,
        vocab_size=58101,
        decoder_vocab_size=None,
        share_encoder_decoder_embeddings=True,
    ),
}

KEYS = bart.KEYS


def NAMES(c: Config) -> Names:
    """BART's; stacks that share nothing own their tables."""
    if shares(c):
        return bart.NAMES(c)
    return {**bart.NAMES(c), "embedding": f"{root(c)}decoder.embed_tokens"}


def read(c: Config) -> dict[str, Any]:
    """BART's fields, with the vocabularies."""
    return bart.read(c) | vocabularies(c)


def shares(c: Config) -> bool:
    """Whether both stacks read one table."""
    return bool(c.share_encoder_decoder_embeddings)


def vocabularies(c: Config) -> dict[str, Any]:
    """The two vocabularies; where the stacks share one, the target's counts only untied."""
    source, target = c.vocab_size, c.get("decoder_vocab_size") or c.vocab_size
    tied, own = c.tie_word_embeddings, root(c)
    if is_alone(c):
        c.keys["vocab_size"] = "decoder_vocab_size" if source != target else "vocab_size"
        if tied or source == target:
            return {"vocab_size": target}
        mine = Rows((table(c, f"{own}decoder.embed_tokens", target),))
        return {"vocab_size": source, "embedding": False, "outer": (mine,)}
    first = table(c, f"{own}encoder.embed_tokens", source)
    if not shares(c):
        return {"vocab_size": target, "outer": (Rows((first,)),)}
    copies = () if tied else (first, table(c, f"{own}decoder.embed_tokens", target))
    return {"vocab_size": source, "outer": (Rows(copies),) if copies else ()}

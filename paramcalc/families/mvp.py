"""MVP (arXiv:2206.12131): BART, with prompts learned for each layer if ``use_prompt``."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows
from paramcalc.families import bart
from paramcalc.families.bart import LARGE, is_alone, root
from paramcalc.families.config import Config
from paramcalc.ledger import Operation, Row, Tensor
from paramcalc.sight import State

TYPES: dict[str, dict[str, Any]] = {
    "mvp": dict(LARGE, vocab_size=50267, use_prompt=False, prompt_length=100, prompt_mid_dim=800),
}

NAMES, KEYS = bart.NAMES, bart.KEYS


def read(c: Config) -> dict[str, Any]:
    """BART's fields; a decoder alone has no prompts."""
    fields = bart.read(c)
    c.ignore("use_prompt", "prompt_length", "prompt_mid_dim")
    if c.use_prompt and not is_alone(c):
        networks, own = _prompts(c)
        fields["outer"] += (networks,)
        fields["blocks"] = (own,)
        fields["encoder"]["blocks"] = ()
        c.left_out.append("the encoder's prompts, which the framework's class does not make")
    return fields


def _prompts(c: Config) -> tuple[Rows, Rows]:
    """The prompts: a network makes the keys and values that a layer sees beside the tokens'.

    It runs once a sequence, on ``prompt_length`` rows; in every attention each token meets as many
    positions more. Returned are the networks and a layer's work.
    """
    d, length, middle = c.hidden_size, c.size("prompt_length"), c.size("prompt_mid_dim")
    rows: list[Row] = []
    for name in ("self_attn_prompt", "cross_attn_prompt"):
        own = f"{root(c)}decoder.{name}"
        rows.append(Tensor(f"{own}.prompt_embedding.weight", "position", (length, d), "lookup"))
        for place, out, into in ((0, middle, d), (2, c.decoder_layers * 2 * d, middle)):
            part = f"{own}.prompt_trans.{place}"
            rows += [
                Tensor(f"{part}.weight", "attention", (out, into), runs=length, stream="sequence"),
                Tensor(f"{part}.bias", "attention", (out,), "bias", stream="sequence"),
            ]
    pairs = 2 * d * length  # scores, and as much for the values
    work = [
        Operation(f"{name}.{part}", "attention", pairs, State())
        for name in ("attention.prompt", "cross_attention.prompt")
        for part in ("scores", "values")
    ]
    return Rows(tuple(rows)), Rows(tuple(work))

"""Encoder-decoders whose classes compute more, or less, than their sequences."""

from __future__ import annotations

from paramcalc.ledger import Operation, Tensor
from paramcalc.model import Model
from paramcalc.numbers import ceil_div
from paramcalc.sight import BothChunk
from tests.families.causes import Cause


def _layers(model: Model, tower: str) -> list[object]:
    return [
        row for layer in model.ledger.layers if layer.tower == tower for row in layer.all_rows()
    ]


def _matmuls(rows: list[object], stream: str) -> int:
    return sum(r.flops for r in rows if isinstance(r, Tensor) and r.stream == stream)


_PEGASUS_X = {"block_size": 512, "num_global_tokens": 32, "stagger_local_blocks": True}


def global_tokens(model: Model, n: int) -> int:
    """Pegasus-X: padded to blocks, 32 tokens more, and attention inside blocks and to those; every
    second layer shifts its blocks by half of one, which adds a block to its attention."""
    assert model.reading is not None
    config = {**_PEGASUS_X, **model.reading.data}
    block, more = config["block_size"], config["num_global_tokens"]
    padded = ceil_div(n, block) * block
    rows = _layers(model, "encoder")
    pairs = padded * (block + more) + more * (padded + more) - n * (n + more)
    local = (r for r in rows if isinstance(r, Operation) and isinstance(r.sight, BothChunk))
    work = sum(r.copies * r.flops_per_pair for r in local)
    own = sum(r.flops for r in rows if isinstance(r, Tensor) and r.role == "attention")
    shifted = own * block + work * (block * (block + more) + more * block)
    assert model.spec.encoder is not None
    layers = model.spec.encoder.n_layers
    some = layers // 2 if config["stagger_local_blocks"] else 0
    return (padded - n + more) * _matmuls(rows, "source") + work * pairs + shifted * some // layers


def streams(model: Model, n: int) -> int:
    """ProphetNet: the main stream and one for each word ahead; those see two streams each."""
    assert model.reading is not None
    ahead = model.reading.data.get("ngram", 2)
    rows = _layers(model, "decoder")
    head = sum(t.flops for t in model.ledger.tensors if t.name == "head")
    matmuls = ahead * n * _matmuls(rows, "token") + (ahead - 1) * n * head
    own = sum(r.copies * r.flops_per_pair for r in rows if _is(r, "attention"))
    cross = sum(r.copies * r.flops_per_pair for r in rows if _is(r, "cross_attention"))
    return matmuls + ahead * n * n * (2 * own + cross)


def _is(row: object, part: str) -> bool:
    return isinstance(row, Operation) and row.name.split("*.")[-1].startswith(f"{part}.")


CAUSES = {
    ("pegasus_x", "PegasusXForConditionalGeneration"): Cause(
        "the encoder pads to blocks of 512, adds 32 global tokens and attends inside blocks",
        global_tokens,
    ),
    ("prophetnet", "ProphetNetForCausalLM"): Cause(
        "the decoder runs a stream more for each word it predicts ahead", streams
    ),
    ("prophetnet", "ProphetNetForConditionalGeneration"): Cause(
        "the decoder runs a stream more for each word it predicts ahead", streams
    ),
}

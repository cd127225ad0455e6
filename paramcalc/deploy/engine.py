"""What an inference engine adds to weights and cache: pages, workspace, reserve.

The constants are vLLM's, measured by others on an H100 of 79.18 GiB (llm-d-benchmark,
config_explorer/empirical-vllm-memory-results.md, 2025), and each may be changed.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import NamedTuple

from paramcalc.deploy.figures import GIB
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import several
from paramcalc.errors import InputError
from paramcalc.ledger import Cache, Ledger, Row, Tensor
from paramcalc.numbers import Num, ceil_div, maximum, minimum
from paramcalc.quantities.asked import whole
from paramcalc.sight import State, Window

MEASURED = "llm-d-benchmark, H100"
RESERVE = round(Fraction(14, 100) * GIB)
"""Outside the allocator on one GPU: 0.13 to 0.14 GiB in nine runs."""
RESERVE_RANKS = round(Fraction(55, 100) * GIB)
"""The same with communication buffers (tp 2): 0.54 and 0.55 GiB."""
LOGIT_BYTES = 39
"""Bytes a logit while sampling is profiled: 38.4 to 39.6 in seven runs of five vocabularies
(4.76 GiB for 1,024 x 128,256)."""
STREAMS = 8
"""Vectors of d_model alive at once, beside what one feed-forward part makes: with 8, 8,192 tokens
of Mistral-Small-24B take the 2.12 GiB that were measured."""
MXFP4_MULTIPLE = 256
"""MXFP4 kernels store d_model padded to a multiple of 256 (2,880 to 3,072 for gpt-oss; measured
13.47 and 64.38 GiB)."""


class Engine(NamedTuple):
    """An inference engine's settings.

    ``utilization`` of a GPU's memory is its own; a cache page holds ``page`` tokens; a step
    processes at most ``max_batched_tokens`` and samples for at most ``max_seqs`` requests. The
    defaults are those of vLLM's server on a large GPU; ``for_gpu`` gives those of any.
    """

    utilization: Fraction = Fraction(9, 10)
    page: int = 16
    max_batched_tokens: int = 8192
    max_seqs: int = 1024
    reserve: int | None = None

    def budget(self, capacity: int) -> int:
        """Bytes of a GPU's memory that the engine takes."""
        return int(capacity * self.utilization)

    def reserve_bytes(self, ranks: Num) -> Num:
        """Bytes outside the allocator on one of ``ranks`` GPUs that work together."""
        if self.reserve is not None:
            return self.reserve
        return RESERVE + (RESERVE_RANKS - RESERVE) * several(ranks)


def check_settings(engine: Engine) -> None:
    """Raise ``InputError`` with one line for a setting that no engine has; numbers only."""
    share = engine.utilization
    if isinstance(share, bool) or not isinstance(share, int | Fraction) or not 0 < share <= 1:
        raise InputError(
            f"utilization = {share}: must be a fraction above 0, at most 1; as Fraction(9, 10)"
        )
    for name in ("page", "max_batched_tokens", "max_seqs"):
        whole(name, getattr(engine, name), 1)
    if engine.reserve is not None:
        whole("reserve", engine.reserve, 0)


LARGE = 70 * GIB


def for_gpu(gpu: Accelerator) -> Engine:
    """Return vLLM's defaults for a server on a GPU (``get_batch_defaults`` of its
    engine/arg_utils.py): 8,192 tokens a step and 1,024 requests from 70 GiB, but for the A100;
    2,048 and 256 on others."""
    if gpu.visible_bytes >= LARGE and "a100" not in gpu.name:
        return Engine()
    return Engine(max_batched_tokens=2048, max_seqs=256)


def paged_elements(cache: Cache, n: Num, page: int) -> Num:
    """Return the elements of a cache row as whole pages of ``page`` tokens, after n tokens.

    A window keeps the pages it touches: one more than fit in it. A state has no pages.
    """
    kept = cache.sight.kept(n)
    if not isinstance(cache.sight, State):
        kept = ceil_div(kept, page)
        if isinstance(cache.sight, Window):
            pages = ceil_div(cache.sight.size - 1, page) + 1
            kept = minimum(ceil_div(n, page), pages)
        kept = kept * page
    return cache.copies * cache.per_position * kept


def workspace(ledger: Ledger, vocab: Num, engine: Engine, bits: int = 16) -> tuple[Num, Num]:
    """Return the bytes of the widest layer's forward pass and of sampling, on one GPU.

    They are not alive at once: an engine reserves the larger. ``ledger`` is the GPU's own.
    """
    wide = reduce(maximum, (_width(layer.rows) for layer in ledger.layers), 0)
    streams = [t.shape[-1] for t in ledger.tensors if t.role in ("embedding", "head", "norm")]
    d = reduce(maximum, streams, 0)
    forward = engine.max_batched_tokens * (wide + STREAMS * d) * bits // 8
    return forward, engine.max_seqs * vocab * LOGIT_BYTES


def _width(rows: tuple[Row, ...]) -> Num:
    """What a token's feed-forward part makes in one layer: outputs, and the input of the last."""
    ffn = [r for r in rows if isinstance(r, Tensor) and r.role == "ffn" and len(r.shape) == 2]
    made = sum(t.active * t.shape[0] for t in ffn if t.shard.endswith("column"))
    return made + sum(t.active * t.shape[1] for t in ffn if t.shard.endswith("row"))


def padded_for_kernels(ledger: Ledger, format_name: str) -> Ledger:
    """Return the ledger with expert matrices as an MXFP4 kernel stores them, else as it is."""
    if not format_name.startswith("mxfp4"):
        return ledger
    kinds = [
        layer._replace(rows=tuple(_padded(row) for row in layer.rows)) for layer in ledger.layers
    ]
    return Ledger.of(ledger.outer, kinds)


def _padded(row: Row) -> Row:
    if not (isinstance(row, Tensor) and row.use == "matmul" and row.shard.startswith("expert+")):
        return row
    out, into = row.shape
    if row.shard == "expert+row":
        return row._replace(shape=(ceil_div(out, MXFP4_MULTIPLE) * MXFP4_MULTIPLE, into))
    return row._replace(shape=(out, ceil_div(into, MXFP4_MULTIPLE) * MXFP4_MULTIPLE))

"""Pipeline schedules: which layers a stage holds, microbatches in flight, the bubble.

* ``gpipe`` (arXiv:1811.06965): all forward passes, then all backward passes; every stage holds the
  activations of all m microbatches.
* ``1f1b`` (Narayanan et al., arXiv:2104.04473, section 2.2): stage i of p, from 0, holds p - i.
* ``interleaved`` (the same, section 2.2.2): a GPU holds v chunks of layers, p stages apart. On
  stage i, 2 (p - i - 1) + (v - 1) p + 1 of its m v passes are in flight (Megatron-LM,
  ``schedules.py``), so that the first holds 1 + (p - 1) / (p v) of all layers (Korthikanti et al.,
  arXiv:2205.05198, section 4.2.3).

The bubble is idle time over the time of the work itself: (p - 1) / m, or (p - 1) / (v m).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Literal, NamedTuple, TypeAlias, get_args

from paramcalc.deploy import parallel
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.ledger import LayerRows, Ledger

Kind: TypeAlias = Literal["gpipe", "1f1b", "interleaved"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Schedule(NamedTuple):
    """The order of passes over ``pp`` stages; ``chunks`` (v) a GPU where it is interleaved."""

    kind: Kind = "1f1b"
    chunks: int = 1

    def in_flight(self, stage: int, pp: int, microbatches: int) -> int:
        """Passes whose activations a stage holds at most; each is through one chunk."""
        if self.kind == "gpipe":
            return microbatches
        if self.kind == "1f1b":
            return min(pp - stage, microbatches)
        warmup = 2 * (pp - stage - 1) + (self.chunks - 1) * pp
        return min(warmup + 1, microbatches * self.chunks)

    def bubble(self, pp: int, microbatches: int) -> Fraction:
        """Idle time over the time of the work."""
        return Fraction(pp - 1, microbatches * self.chunks)


def check(schedule: Schedule, ledger: Ledger, pp: int, microbatches: int) -> None:
    """Raise ``InputError`` where a schedule cannot run."""
    kind, v = schedule
    if kind not in KINDS:
        raise InputError(f"schedule = {kind}: must be one of {', '.join(KINDS)}; use one")
    if kind != "interleaved":
        if v != 1:
            raise InputError(f"virtual = {v}: only with --schedule interleaved; add it")
        return
    if v < 2 or pp < 2:
        raise InputError(f"virtual = {v}: needs 2 chunks and 2 stages or more; raise it or pp")
    layers = sum(kind.n_layers for kind in ledger.layers)
    if layers % (pp * v):
        raise InputError(f"virtual = {v}: pp x virtual = {pp * v} must divide {layers} layers")
    if microbatches % pp:
        raise InputError(
            f"global_batch: {microbatches} microbatches must be a multiple of pp = {pp} for the"
            " interleaved schedule; change it"
        )


def stages(schedule: Schedule, ledger: Ledger, layout: Layout) -> list[Ledger]:
    """Return the ledger of each stage: all its chunks, not yet sharded."""
    pp, v = layout.pp, schedule.chunks
    parts = parallel.stages(ledger, layout._replace(pp=pp * v))
    if v == 1:
        return parts
    alike: dict[tuple[int, ...], Ledger] = {}  # as in parallel.stages
    found = []
    for stage in range(pp):
        chunks = [parts[chunk * pp + stage] for chunk in range(v)]
        key = tuple(id(part.rows) for part in chunks)
        if key not in alike:
            alike[key] = _joined(chunks)
        found.append(alike[key]._replace(layers=_kinds(chunks)))
    return found


def _joined(parts: list[Ledger]) -> Ledger:
    return Ledger.of((row for part in parts for row in part.outer), _kinds(parts))


def _kinds(parts: list[Ledger]) -> tuple[LayerRows, ...]:
    return tuple(kind for part in parts for kind in part.layers)

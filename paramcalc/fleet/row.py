"""A row: what its cells say, each read when a figure needs it.

Every cell is a text, as a person typed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from paramcalc import formats
from paramcalc.deploy import hardware_file
from paramcalc.deploy.columns import Placed
from paramcalc.deploy.engine import for_gpu
from paramcalc.deploy.fit import MOST_TOKENS, Load
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError, printable
from paramcalc.fleet.staged import Staged
from paramcalc.model import Model
from paramcalc.quantities.catalogue import At
from paramcalc.spelling import parse_size, shown

if TYPE_CHECKING:
    from paramcalc.fleet.answers import Fleet


class Fault(NamedTuple):
    """A cell that cannot be read, and why."""

    text: str


Cell: TypeAlias = str | Fault


class Row:
    """What a row's cells say. Each property raises ``InputError`` where its cell is wrong."""

    def __init__(self, fleet: Fleet, cells: Mapping[str, Cell]) -> None:
        self.fleet = fleet
        self.cells = cells
        self.unfit = False
        """Whether a figure was left empty because the model does not fit."""

    def _text(self, role: str) -> str:
        cell = self.cells.get(role, "")
        if isinstance(cell, Fault):
            raise InputError(f"{role}: {cell.text}")
        return cell.strip()

    def _size(self, role: str, empty: int) -> int:
        text = self._text(role)
        if not text:
            return empty
        try:
            value = parse_size(text, tokens=role == "context")
        except ValueError as error:
            raise InputError(f"{role} = {shown(text)}: {printable(str(error))}") from None
        if not 1 <= value <= MOST_TOKENS:
            raise InputError(f"{role} = {value:,}: must be from 1 to {MOST_TOKENS:,}; change it")
        return value

    @cached_property
    def model(self) -> Model:
        """The row's model."""
        name = self._text("model")
        if not name:
            raise InputError("model: empty; name a preset or a file")
        return self.fleet.found(name)

    @cached_property
    def context(self) -> int:
        """Tokens of each sequence: the row's, else the model's own."""
        found = self._size("context", 0)
        if not found and self.model.spec.context is None:
            self.fleet.assumed_context += 1
        return found or self.model.context

    @cached_property
    def batch(self) -> int:
        """Sequences on all GPUs together; 1 unless stated."""
        return self._size("batch", 1)

    @cached_property
    def gpus(self) -> int:
        """GPUs in all; unless stated, one for each tensor-parallel rank."""
        return self._size("gpus", self.tp or 1)

    @cached_property
    def tp(self) -> int:
        """Tensor-parallel ranks; 0 unless stated."""
        return self._size("tp", 0)

    @cached_property
    def dtype(self) -> str:
        """The format of the weights; as released unless stated."""
        name = self._text("dtype") or self.model.released_format
        _ = self.model  # its fault comes first
        return self.fleet.format(self._text("model"), name).name

    @cached_property
    def kv_dtype(self) -> str:
        """The format of the cache; bf16 unless stated."""
        return formats.kv_format(self._text("kv_dtype") or "bf16").name

    @cached_property
    def gpu(self) -> Accelerator:
        """The kind of GPU, at the row's price, else at the one for all."""
        name = self._text("gpu")
        if not name:
            raise InputError("gpu: empty, so its figures are left out; name a kind of GPU")
        found = self.fleet.gpu(name)
        price = self.price
        return found if price is None else hardware_file.priced(found, price)

    @property
    def price(self) -> str | None:
        """Dollars for an hour of a GPU; None where neither the row nor the caller states any."""
        return self._text("price") or self.fleet.default_price

    @cached_property
    def layout(self) -> Layout:
        """How the GPUs share the work: stated ranks, the rest replicas; else as ``fit`` chooses."""
        _ = self.model  # its fault comes first
        return self.fleet.layout(self._text("model"), self.gpus, self.tp)

    @cached_property
    def at(self) -> At:
        """What stands beside the model."""
        return At(self.context, self.batch, formats.kv_format(self.kv_dtype).bits)

    @cached_property
    def placed(self) -> Placed:
        """The model on the row's GPUs."""
        gpu, layout, dtype, name = self.gpu, self.layout, self.dtype, self._text("model")
        if layout.pp > 1 or not gpu.peaks:
            deployment = self.fleet.deployment(name, layout, dtype, self.kv_dtype, for_gpu(gpu))
            return Staged(deployment, gpu, Load(self.context, self.batch))
        at, model = self.at, self.model
        sizes = {"gpus": self.gpus, "tp": layout.tp, "context": at.n, "batch": at.batch}
        fmt, vocab = self.fleet.format(name, dtype), model.spec.vocab_size
        placed = Placed(model.ledger, gpu, fmt, at.kv_bits, sizes, vocab)
        placed.stage = self.fleet.stage(
            name, layout, dtype, placed.engine
        )  # the same for every load
        return placed

    @property
    def weight_bytes(self) -> int:
        """Bytes of all weights."""
        _ = self.model
        return self.fleet.weight_bytes(self._text("model"), self.dtype)

    @property
    def served(self) -> Placed:
        """The same, where the model writes."""
        if not self.model.spec.writes:
            raise InputError(
                f"model = {self.model.name}: every token sees all others, so it writes none;"
                " times are left out"
            )
        return self.placed

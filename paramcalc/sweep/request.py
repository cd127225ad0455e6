"""What a sweep is asked for, and the plan that answers it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.sources.loading import load
from paramcalc.sweep import axes as axes_module
from paramcalc.sweep import columns as columns_module
from paramcalc.sweep.axes import Axis
from paramcalc.sweep.expressions import Expression
from paramcalc.sweep.grid import RELEASED, WORDS, Sheet, sheets
from paramcalc.sweep.possible import leave_out
from paramcalc.sweep.table import Table

if TYPE_CHECKING:
    from paramcalc.deploy.hardware import Accelerator
    from paramcalc.formats.schemes import Format

Array = np.ndarray[Any, np.dtype[Any]]

PART_ROWS = 4_194_304
BASE = "llama3-8b"
"""The model whose fields stand where no model is named."""


def _format(name: str) -> Format:
    """A format of every model's weights. Raises ``InputError``."""
    from paramcalc import formats
    from paramcalc.formats.mixed import is_file_type

    if is_file_type(name):
        raise InputError(
            f"dtype = {name}: file types of llama.cpp are not in a sweep; fit, serve and formats"
            " have them"
        )
    return formats.find(name)


@dataclass(frozen=True)
class Request:
    """A sweep in plain words, so that it can be stored, compared and sent to another machine.

    ``axes`` are (field, text) pairs; ``where`` conditions that must all hold; ``by`` and ``top``
    keep the best rows by a column (``descending`` the largest). ``pareto`` keeps the rows that no
    other beats in all of the named columns: smaller is better, or larger where a name starts with
    ``-``. ``hardware`` are files of a person's own accelerators, ``price`` what an hour of each GPU
    costs in dollars. ``part_rows`` is how many rows, before conditions, go into a part of a folder.
    """

    models: tuple[str, ...] = (BASE,)
    axes: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    top: int | None = None
    by: str | None = None
    descending: bool = False
    pareto: tuple[str, ...] = ()
    part_rows: int = PART_ROWS
    hardware: tuple[str, ...] = ()
    price: str | None = None


class Plan:
    """A request with its models read, its grid laid out and its columns compiled.

    Raises ``InputError`` with one line for whatever cannot be answered.
    """

    def __init__(self, request: Request, *, with_axes: bool = False) -> None:
        self.request = request
        self.axes: list[Axis] = [self._axis(name, text) for name, text in request.axes]
        fields = [a.field for a in self.axes]
        several = len(request.models) > 1
        figures: tuple[str, ...] = columns_module.DEFAULT
        if "gpu" in fields:
            figures = tuple(n for n in columns_module.DEPLOYED if not self._unpriced(n))
        default = [*(["model"] if several else []), *fields, *figures]
        self.shown = list(dict.fromkeys(request.columns or default))
        known = columns_module.known(fields)
        columns_module.check(self.shown, fields)
        self.where = [Expression(text, "where", known, condition=True) for text in request.where]
        used = [name for e in self.where for name in sorted(e.names)]
        self.sort = [] if request.by is None else [request.by]
        self.front = [(n.lstrip("-"), -1 if n.startswith("-") else 1) for n in request.pareto]
        """The columns of a Pareto front, each with -1 where larger is better."""
        asked = [*used, *self.sort, *(name for name, _ in self.front)]
        columns_module.check(asked, fields)
        self._check_deployment(fields, [*fields, *self.shown, *asked])
        for name in asked:
            if known[name] == "name":
                raise InputError(f"{name}: holds names, not numbers; use another column")
        extra = fields if with_axes else []
        self.names = list(dict.fromkeys([*self.shown, *asked, *extra]))
        for name in self.names:
            if gpu := self._unpriced(name):
                raise InputError(
                    f"{name}: {gpu} has no price; add --price 2.49, or --hardware with one"
                )

    def _unpriced(self, name: str) -> str | None:
        """The first GPU without a price, if a column is of money."""
        if not name.startswith("cost_"):
            return None
        kinds = next((axis.values or () for axis in self.axes if axis.field == "gpu"), ())
        return next((kind.name for kind in kinds if kind.price_per_hour_micro is None), None)

    def _check_deployment(self, fields: list[str], names: list[str]) -> None:
        if "gpu" in fields:
            return
        for name in ("gpus", "tp"):
            if name in names:
                raise InputError(f"{name}: shares a model out over GPUs; add --gpu h100")
        if self.request.price is not None:
            raise InputError(f"price = {self.request.price}: is of a GPU-hour; add --gpu h100")
        if self.request.hardware:
            raise InputError("hardware: is read for the GPUs that are named; add --gpu h100")

    def _axis(self, name: str, text: str) -> Axis:
        if name in WORDS:
            axis = axes_module.switch(name, text)
            if name == "gpu":
                from paramcalc.deploy import hardware

                own = self.request.hardware
                kinds = tuple(hardware.find(str(v), own) for v in axis.values or ())
                return axis._replace(values=tuple(self._priced(kind) for kind in kinds))
            from paramcalc import formats

            find = _format if name == "dtype" else formats.kv_format
            words = [str(value) for value in axis.values or ()]
            names = (w if name == "dtype" and w == RELEASED else find(w).name for w in words)
            return axis._replace(values=tuple(names))
        from paramcalc.spec import ModelSpec
        from paramcalc.spelling import canonical
        from paramcalc.sweep.placing import DEPLOYMENT
        from paramcalc.symbolic import NAMES

        full = canonical(name)
        last = full.rpartition(".")[2]
        if last in NAMES or full in DEPLOYMENT:
            return axes_module.parse(full, text)
        if "." not in full and full not in ModelSpec.model_fields:
            from paramcalc.errors import did_you_mean

            near = did_you_mean(full, ModelSpec.model_fields)
            raise InputError(f"{full}: no field of a model{near or '; see docs/fields.md'}")
        return axes_module.switch(full, text)

    def _priced(self, kind: Accelerator) -> Accelerator:
        """The GPU with the price that was stated for all."""
        from paramcalc.deploy.hardware_file import priced

        return kind if self.request.price is None else priced(kind, self.request.price)

    @cached_property
    def models(self) -> list[Model]:
        """The models of the grid."""
        return [load(name) for name in self.request.models]

    @cached_property
    def sheets(self) -> list[Sheet]:
        """The grid, sheet by sheet."""
        found = list(sheets(self.models, self.axes))
        for sheet in found:
            leave_out(sheet, self.names)
        return found

    @cached_property
    def tables(self) -> list[Table]:
        """The compiled columns of each sheet that has rows."""
        return [Table(sheet, self.names) for sheet in self.sheets if sheet.rows]

    @cached_property
    def starts(self) -> list[int]:
        """Each table's first row in the whole grid."""
        return [0, *accumulate(table.rows for table in self.tables)][:-1]

    @property
    def every_row(self) -> bool:
        """Whether the answer is the grid itself: nothing is left out of it and nothing sorted."""
        return not (self.where or self.request.by or self.request.pareto)

    @property
    def rows(self) -> int:
        """How many possible shapes the grid has."""
        return sum(sheet.rows for sheet in self.sheets)

    def dropped(self) -> dict[str, int]:
        """How many shapes were left out, by reason."""
        total: dict[str, int] = {}
        for sheet in self.sheets:
            for reason, count in sheet.dropped.items():
                total[reason] = total.get(reason, 0) + count
        return total

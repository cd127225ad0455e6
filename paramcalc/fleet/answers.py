"""Answers: the figures of one row of a planner's table, and what is wrong with it in one line.

A figure whose cells are wrong is left empty and the
first fault said; the others are given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from paramcalc.deploy import choices, hardware, parallel
from paramcalc.deploy import columns as deployed
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import Deployment, Stage
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError, ParamcalcError, UnknownPreset, did_you_mean, printable
from paramcalc.fleet.row import Cell, Row
from paramcalc.formats import AnyFormat
from paramcalc.ledger import ROLES
from paramcalc.model import Model
from paramcalc.quantities import params
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.sources import loading, presets
from paramcalc.spelling import shown

ERROR = "paramcalc_error"
"""The column that says what is wrong with a row; empty where nothing is."""
MODEL = ("params", "active_params", "weight_bytes", "kv_bytes", "flops_per_token")
ON_GPUS = ("gpu_bytes_needed", "gpu_free_bytes", "fits", "tokens_per_second")
MONEY = ("cost_per_hour", "cost_per_million_tokens")
"""What is appended unless columns are named: of every model, of one on GPUs, of one with a
price."""
MOST_MODELS = 1000
"""Models that are kept in memory."""
MOST_UNKNOWN = 300
"""Different names that may be no model before any is one: it is the wrong column then."""

Figure: TypeAlias = int | bool | str | None


class Answer(NamedTuple):
    """A row's figures in the order of the columns, and the first fault in it, else None."""

    figures: tuple[Figure, ...]
    error: str | None


def columns(names: Sequence[str], roles: Mapping[str, int], *, priced: bool) -> list[str]:
    """Return the columns to append: those named, else what the table's columns make of sense.

    ``priced`` says that some GPU has a price. Raises ``InputError`` for a name that is no column,
    that stands twice, or that needs a column of GPUs or a price.
    """
    money = MONEY if priced else ()
    wanted = list(names) or [*MODEL, *((*ON_GPUS, *money) if "gpu" in roles else ())]
    for name in wanted:
        if name not in _FIGURES:
            near = did_you_mean(name, _FIGURES) or "; paramcalc sweep --list-columns lists them"
            raise InputError(f"columns = {shown(name)}: unknown column{near}")
        if wanted.count(name) > 1:
            raise InputError(f"columns = {name}: stands twice; name it once")
        if name in _NEEDS_GPU and "gpu" not in roles:
            raise InputError(f"columns = {name}: is a figure of a GPU; give --gpu-column")
        if name.startswith("cost_") and not priced:
            raise InputError(f"columns = {name}: no GPU has a price; give --price 2.49")
    return wanted


class Fleet:
    """Answers rows. ``folder`` is where relative paths of models start, ``hardware`` are files of a
    person's own accelerators, ``price`` dollars for an hour of a GPU whose row states none."""

    def __init__(
        self,
        names: Sequence[str],
        folder: Path,
        hardware: Sequence[str] = (),
        price: str | None = None,
    ) -> None:
        self.names = tuple(names)
        self.folder = folder
        self.files = tuple(hardware)
        self.default_price = price
        self.known: dict[str, Model] = {}
        """The first models that were read, by name, for what is to be said of them."""
        self.unknown = 0
        self.assumed_context = 0
        """Different rows whose context neither they nor their model state."""
        self.model = lru_cache(MOST_MODELS)(self._model)
        self.gpu = lru_cache(MOST_MODELS)(self._gpu)
        self.format = lru_cache(MOST_MODELS)(self._format)
        self.layout = lru_cache(MOST_MODELS)(self._layout)
        self.deployment = lru_cache(MOST_MODELS)(self._deployment)
        self.stage = lru_cache(MOST_MODELS)(self._stage)
        self.weight_bytes = lru_cache(MOST_MODELS)(self._weight_bytes)
        self._answers: dict[tuple[tuple[str, Cell], ...], Answer] = {}

    def answer(self, cells: Mapping[str, Cell]) -> Answer:
        """Return the answer for a row's cells by role; equal rows are counted once."""
        key = tuple(cells.items())
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) > MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[key] = self._answer(cells)
        return found

    def _answer(self, cells: Mapping[str, Cell]) -> Answer:
        row = Row(self, cells)
        figures: list[Figure] = []
        faults: dict[str, None] = {}
        for name in self.names:
            try:
                figures.append(_FIGURES[name](row))
            except InputError as error:
                figures.append(None)
                faults[" ".join(printable(str(error)).split())] = None
        for role, cell in cells.items():
            try:
                if cell and role != "price":  # a mistake is said though no column needs the cell
                    getattr(row, role)
            except InputError as error:
                faults[" ".join(printable(str(error)).split())] = None
        if not faults:
            return Answer(tuple(figures), None)
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return Answer(tuple(figures), next(iter(faults)) + more)

    def _model(self, name: str) -> Model | str:
        """The model of a cell, or what is wrong with it."""
        try:
            found = loading.load(self._source(name))
            _ = found.ledger
        except InputError as error:
            self.unknown += 1
            if self.unknown == MOST_UNKNOWN and not self.known:
                raise NoModels(
                    f"{MOST_UNKNOWN:,} different names, and none is a model; name the right column"
                ) from None
            return f"model: {error}"
        if len(self.known) < MOST_MODELS:
            self.known[name] = found
        return found

    def _source(self, name: str) -> str | Path:
        """A preset's or a hub model's name, or the path of a file; relative ones start at the
        table's folder."""
        path = self.folder / Path(name).expanduser()
        if not loading.is_file_name(name):
            try:
                presets.find(name)
            except UnknownPreset:
                if not _exists(path):
                    return name
            else:
                return name
        if _exists(path) and not (path.is_file() or path.is_dir()):
            raise InputError(f"{presets.shown(name)}: is no file; name a YAML file or a config")
        return path

    def _gpu(self, name: str) -> Accelerator:
        return hardware.find(name, self.files)

    def _there(self, name: str) -> Model:
        """A model that its row has found."""
        found = self.model(name)
        assert isinstance(found, Model)
        return found

    def _format(self, model: str, dtype: str) -> AnyFormat:
        return self._there(model).format(dtype)

    def _weight_bytes(self, model: str, dtype: str) -> int:
        return self._there(model).memory.weight_bytes(dtype)

    def _layout(self, model: str, gpus: int, tp: int) -> Layout:
        """Stated ranks (not 0), the rest replicas; else as ``fit`` chooses."""
        found = self._there(model)
        if not tp:
            try:
                return choices.chosen(found, gpus)
            except InputError:
                raise InputError(
                    f"gpus = {gpus:,}: no tp up to 8 and pp make one replica of so many;"
                    " state tp in a column"
                ) from None
        if gpus % tp:
            raise InputError(f"gpus = {gpus:,}: must be a multiple of tp = {tp:,}; change one")
        layout = Layout(tp=tp, dp=gpus // tp)
        parallel.check(found.ledger, layout)
        return layout

    def _deployment(
        self, model: str, layout: Layout, dtype: str, kv_dtype: str, engine: Engine
    ) -> Deployment:
        return Deployment(self._there(model), layout, dtype, kv_dtype, engine)

    def _stage(self, model: str, layout: Layout, dtype: str, engine: Engine) -> Stage:
        return Deployment(self._there(model), layout, dtype, engine=engine).stages[0]


MOST_ANSWERS = 200_000
"""Different rows whose answers are remembered."""


class NoModels(ParamcalcError):
    """The column of models holds something else: no answer is worth its rows."""


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or an embedded null character
        return False


def _figures() -> dict[str, Callable[[Row], Figure]]:
    """Every column by its name, the sweep's names for what the sweep has too."""
    found: dict[str, Callable[[Row], Any]] = {}
    for key, quantity in CATALOGUE.items():
        needs = quantity.needs_context or key.startswith("kv_")
        found[key] = _of_row(quantity.of) if needs else _of_model(quantity.of)
    found["weight_bytes"] = lambda row: row.weight_bytes
    for role in ROLES:
        found[f"params_{role}"] = _part(role)
    for key, column in deployed.COLUMNS.items():
        fold = _of_served(column.of) if column.timed else _of_placed(column.of)
        found[key] = _of_priced(fold) if key.startswith("cost_") else fold
    found["fits"] = lambda row: row.placed.free >= 0
    for name in ("context", "batch", "dtype", "kv_dtype"):
        found[name] = _stated(name)
    for name in ("tp", "pp"):
        found[name] = _ranks(name)
    return found


def _of_row(of: Callable[..., Any]) -> Callable[[Row], Any]:
    return lambda row: of(row.model.ledger, row.at)


def _of_model(of: Callable[..., Any]) -> Callable[[Row], Any]:
    return lambda row: of(row.model.ledger, At(1))


def _of_placed(of: Callable[..., Any]) -> Callable[[Row], Any]:
    return lambda row: of(row.placed)


def _of_served(of: Callable[..., Any]) -> Callable[[Row], Any]:
    return lambda row: of(row.served)


def _of_priced(of: Callable[[Row], Any]) -> Callable[[Row], Any]:
    return lambda row: None if row.gpu.price_per_hour_micro is None else of(row)


def _part(role: Any) -> Callable[[Row], Any]:
    return lambda row: params.of_roles(row.model.ledger.tensors, role)


def _stated(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row, name)


def _ranks(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.layout, name)


_FIGURES = _figures()
_NEEDS_GPU = {*deployed.COLUMNS, "fits", "tp", "pp"}

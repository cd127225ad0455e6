"""Answers: the figures of one row of a planner's table, and what is wrong with it in one line.

A figure whose cells are wrong is left empty and the others are given; every fault is said. Times
and money of what does not fit are left empty too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from paramcalc.deploy import choices, hardware, parallel
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.fit import Deployment, Stage
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError, ParamcalcError, UnknownPreset, did_you_mean, printable
from paramcalc.fleet.figures import FIGURES, NEEDS_GPU, Figure
from paramcalc.fleet.row import Cell, Row
from paramcalc.formats import AnyFormat
from paramcalc.model import Model
from paramcalc.sources import loading, presets
from paramcalc.sources.files import typed
from paramcalc.spelling import shown

ERROR = "paramcalc_error"
"""The column that says what is wrong with a row; empty where nothing is."""
MODEL = ("params", "active_params", "weight_bytes", "kv_bytes", "flops_per_token")
ON_GPUS = ("gpu_bytes_needed", "gpu_free_bytes", "fits", "tokens_per_second")
MONEY = ("cost_per_hour_dollars", "cost_per_million_tokens_dollars")
"""What is appended unless columns are named: of every model, of one on GPUs, of one with a
price."""
MOST_MODELS = 1000
"""Models that are kept in memory."""
MOST_LETTERS = 300
"""Of one fault."""
MOST_UNKNOWN = 300
"""Different names that may be no model before any is one: it is the wrong column then."""


class Answer(NamedTuple):
    """A row's figures in the order of the columns, its faults in one line, else None, and whether
    times or money are left empty because it does not fit."""

    figures: tuple[Figure, ...]
    error: str | None
    unfit: bool = False


def columns(names: Sequence[str], roles: Mapping[str, int], *, priced: bool) -> list[str]:
    """Return the columns to append: those named, else what the table's columns make of sense.

    ``priced`` says that some GPU has a price. Raises ``InputError`` for a name that is no column,
    that stands twice, or that needs a column of GPUs or a price.
    """
    money = MONEY if priced else ()
    wanted = list(names) or [*MODEL, *((*ON_GPUS, *money) if "gpu" in roles else ())]
    for name in wanted:
        if name not in FIGURES:
            near = did_you_mean(name, FIGURES) or "; paramcalc sweep --list-columns lists them"
            raise InputError(f"columns = {shown(name)}: unknown column{near}")
        if wanted.count(name) > 1:
            raise InputError(f"columns = {name}: stands twice; name it once")
        if name in NEEDS_GPU and "gpu" not in roles:
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
                figures.append(FIGURES[name](row))
            except InputError as error:
                figures.append(None)
                faults[_line(error)] = None
        for role, cell in cells.items():
            try:
                if cell and role != "price":  # a mistake is said though no column needs the cell
                    getattr(row, role)
            except InputError as error:
                faults[_line(error)] = None
        return Answer(tuple(figures), "; ".join(faults) or None, row.unfit)

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
        path = self.folder / typed(name)
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

    def found(self, name: str) -> Model:
        """Return the model of a name. Raises ``InputError`` where there is none."""
        found = self.model(name)
        if isinstance(found, str):
            raise InputError(found)
        return found

    def _format(self, model: str, dtype: str) -> AnyFormat:
        return self.found(model).format(dtype)

    def _weight_bytes(self, model: str, dtype: str) -> int:
        return self.found(model).memory.weight_bytes(dtype)

    def _layout(self, model: str, gpus: int, tp: int) -> Layout:
        """Stated ranks (not 0), the rest replicas; else as ``fit`` chooses."""
        found = self.found(model)
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
        return Deployment(self.found(model), layout, dtype, kv_dtype, engine)

    def _stage(self, model: str, layout: Layout, dtype: str, engine: Engine) -> Stage:
        return Deployment(self.found(model), layout, dtype, engine=engine).stages[0]


MOST_ANSWERS = 200_000
"""Different rows whose answers are remembered."""


class NoModels(ParamcalcError):
    """The column of models holds something else: no answer is worth its rows."""


def _line(error: InputError) -> str:
    """What is wrong, as one line of sensible length."""
    text = " ".join(printable(str(error)).split())
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 3]}..."


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long, or an embedded null character
        return False

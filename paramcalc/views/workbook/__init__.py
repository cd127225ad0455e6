"""A workbook of models in live formulas: change a cell, and everything follows.

Each model's ledger is counted once on symbols that are called as the cells are, and what comes out
is written as formulas with the integers that Python has for them. Sheets: Inputs, Deployment,
Summary, Compare (of several models), Tensors, Weights, One_GPU, Curve, Formats, Hardware, Lookups,
Steps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from paramcalc import formats
from paramcalc.deploy import parallel
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import Layout
from paramcalc.errors import InputError
from paramcalc.formats.mixed import is_file_type
from paramcalc.formats.schemes import SCHEMES, Format
from paramcalc.model import Model
from paramcalc.views.workbook import curves, figures, summary
from paramcalc.views.workbook.book import Book
from paramcalc.views.workbook.deployment import DeploymentSheet
from paramcalc.views.workbook.input_sheet import InputSheet
from paramcalc.views.workbook.inputs import (
    MOST_BATCH,
    MOST_GPUS,
    MOST_TOKENS,
    MOST_WIDTH,
    Placed,
)
from paramcalc.views.workbook.lists import FormatList, HardwareList
from paramcalc.views.workbook.settings import MOST_TP, Wish
from paramcalc.views.workbook.steps import Steps
from paramcalc.views.workbook.tensors import TensorSheets
from paramcalc.writing import beside

MOST_MODELS = 256
SHEETS = (
    "Inputs",
    "Deployment",
    "Summary",
    "Compare",
    "Tensors",
    "Weights",
    "One_GPU",
    "Curve",
    "Formats",
    "Hardware",
    "Lookups",
    "Steps",
)
"""In the order in which a reader finds them."""
__all__ = ["MOST_MODELS", "Wish", "wish", "write"]


def write(path: Path, models: list[Model], units: list[Accelerator], wish: Wish) -> None:
    """Write a workbook of models; it takes its name when it is whole.

    ``units`` are the accelerators it lists, among them ``wish.gpu``. Raises ``InputError`` for
    models that a workbook does not take or that ``wish`` does not share out, and where XlsxWriter
    is not installed or the file cannot be written.
    """
    if len(models) > MOST_MODELS:
        raise InputError(f"models = {len(models)}: a workbook takes {MOST_MODELS}; write several")
    names = [model.name for model in models]
    for model in models:
        _check(model, wish, names)
    with beside(path) as held:
        book = Book()
        _fill(book, models, units, wish)
        book.close(held)


def _check(model: Model, wish: Wish, names: list[str]) -> None:
    if names.count(model.name) > 1:
        raise InputError(f"model = {model.name}: given twice; leave one out, or rename it")
    if wish.context is None and model.context > MOST_TOKENS:
        raise InputError(
            f"context = {model.context:,}: a workbook takes up to {MOST_TOKENS:,}; add --context"
        )
    widest = summary.widest(model)
    if widest > MOST_WIDTH:
        raise InputError(
            f"model = {model.name}: a tensor is {widest:,} wide, and a workbook takes up to"
            f" {MOST_WIDTH:,}, where its divisions are exact; leave it out"
        )
    try:
        parallel.check(model.ledger, Layout(tp=wish.tp, dp=wish.gpus // wish.tp))
    except InputError as error:
        own = f" (model {model.name})" if len(names) > 1 else ""
        raise InputError(f"{error}{own}") from None


def wish(unit: Accelerator, **fields: Any) -> Wish:
    """Return what a deployment is at first, checked. Raises ``InputError`` with one line."""
    found = Wish(unit, **fields)
    for name, size, most in (
        ("context", found.context, MOST_TOKENS),
        ("batch", found.batch, MOST_BATCH),
        ("gpus", found.gpus, MOST_GPUS),
        ("tp", found.tp, MOST_TP),
    ):
        if size is not None and size > most:
            raise InputError(f"{name} = {size:,}: a workbook takes up to {most:,}; lower it")
    if found.gpus % found.tp:
        raise InputError(
            f"gpus = {found.gpus}: must be a multiple of tp = {found.tp}; change one of them"
        )
    kv_dtype = formats.kv_format(found.kv_dtype).name
    if found.dtype is None:
        return found._replace(kv_dtype=kv_dtype)
    if is_file_type(found.dtype):
        raise InputError(
            f"dtype = {found.dtype}: llama.cpp's types are a table, not a formula; take one of"
            f" {', '.join(SCHEMES)}"
        )
    return found._replace(kv_dtype=kv_dtype, dtype=formats.find(found.dtype).name)


def _fill(book: Book, models: list[Model], units: list[Accelerator], wish: Wish) -> None:
    placed = [Placed(model, number) for number, model in enumerate(models, start=1)]
    limits: dict[str, int] = {}
    for own in placed:
        limits |= own.limits
    book.sheets(name for name in SHEETS if name != "Compare" or len(models) > 1)
    names = [model.name for model in models]
    steps = Steps(book)
    list_ = FormatList(book, _released(models, wish), limits)
    hardware = HardwareList(book, units, list_)
    inputs = InputSheet(book, placed, steps)
    deployment = DeploymentSheet(book, wish, list_, hardware, steps, limits, names)
    dims = max(len(tensor.shape) for own in placed for tensor in own.ledger.tensors)
    tensors = TensorSheets(book, list_, dims)
    sums = summary.Summary(book, list_, hardware, placed)
    for number, own in enumerate(placed):
        column = deployment.add(own)
        writer = steps.writer(own.model.name, limits)
        start = steps.row
        layout = figures.layout_of(column)
        rows = tensors.add(own, layout, writer, column.at("format_number"))
        figures.write(column, rows, writer)
        sums.add(column, rows, writer, number)
        steps.largest(column, start)
        for rule in own.rules_of_gpus(column.at("gpus"), column.at("tp")):
            deployment.rule(column, rule, writer)
    typed = zip(inputs.wrong(), inputs.broken(), strict=True)
    for number, (wrong, broken) in enumerate(typed):
        column = deployment.columns[number]
        lists = [list_.wrong, hardware.wrong(column.name("gpu_number"))]
        deployment.count(column, [wrong, *lists], [broken, sums.widest(number)])
    deployment.finish()
    sums.finish(deployment.columns)
    curves.curve(book, deployment.columns, steps)
    if len(models) > 1:
        curves.compare(book, sums, deployment.columns)


def _released(models: list[Model], wish: Wish) -> list[Format]:
    """The formats that the models are released in, or that was asked for: those the list lacks."""
    found: dict[str, Format] = {}
    for name in (wish.dtype, *(model.released_format for model in models)):
        try:
            fmt = formats.find(name or "bf16")
        except InputError:  # a file type of llama.cpp: its bytes are a table, no formula
            continue
        found[fmt.name] = fmt
    return list(found.values())

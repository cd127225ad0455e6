"""A workbook of models in live formulas: change a cell, and everything follows.

Each model's ledger is counted once on symbols that are called as the cells are, and what comes out
is written as formulas with the integers that Python has for them. Sheets: Inputs, Deployment,
Summary, Compare (of several models), Tensors, Weights, One_GPU, Curve, Formats, Hardware, Steps.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from paramcalc import formats
from paramcalc.deploy.hardware import Accelerator
from paramcalc.errors import InputError
from paramcalc.formats.mixed import is_file_type
from paramcalc.formats.schemes import SCHEMES, Format
from paramcalc.model import Model
from paramcalc.views.workbook import curves, figures, summary
from paramcalc.views.workbook.book import Book
from paramcalc.views.workbook.deployment import MOST_TP, DeploymentSheet, Wish
from paramcalc.views.workbook.input_sheet import InputSheet
from paramcalc.views.workbook.inputs import MOST_BATCH, MOST_GPUS, MOST_TOKENS, Placed
from paramcalc.views.workbook.lists import FormatList, HardwareList
from paramcalc.views.workbook.steps import Steps
from paramcalc.views.workbook.tensors import TensorSheets

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
    "Steps",
)
"""In the order in which a reader finds them."""
__all__ = ["MOST_MODELS", "Wish", "wish", "write"]


def write(path: Path, models: list[Model], units: list[Accelerator], wish: Wish) -> None:
    """Write a workbook of models; it takes its name when it is whole.

    ``units`` are the accelerators it lists, among them ``wish.gpu``. Raises ``InputError`` where
    XlsxWriter is not installed or the file cannot be written.
    """
    if len(models) > MOST_MODELS:
        raise InputError(f"models = {len(models)}: a workbook takes {MOST_MODELS}; write several")
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        book = Book(str(beside))
        _fill(book, models, units, wish)
        book.close()
        os.replace(beside, path)
    except OSError as error:
        raise InputError(f"out = {path}: {(error.strerror or str(error)).lower()}") from None
    finally:
        beside.unlink(missing_ok=True)


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
    list_ = FormatList(book, _released(models, wish), limits)
    hardware = HardwareList(book, units, list_)
    inputs = InputSheet(book, placed)
    deployment = DeploymentSheet(book, wish, list_, hardware, limits, len(models))
    dims = max(len(tensor.shape) for own in placed for tensor in own.ledger.tensors)
    tensors = TensorSheets(book, list_, dims)
    steps = Steps(book)
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
    deployment.finish()
    checks = zip(inputs.broken(), deployment.broken(), strict=True)
    sums.finish([f"{here}+{there}" for here, there in checks])
    curves.curve(book, placed)
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

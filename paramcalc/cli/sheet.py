"""``paramcalc sheet MODEL... -o plan.xlsx``: models as a workbook of live formulas."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o
from paramcalc.errors import InputError
from paramcalc.writing import free

app = typer.Typer(rich_markup_mode=None, add_completion=False)
GPU = "h100"
"""Taken where none is named; the workbook says that it is assumed."""


@app.command()
def sheet(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Presets or YAML files, one or more.",
            autocompletion=o.complete_models,
        ),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The workbook, ending in .xlsx.")
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    context: o.Context = None,
    batch: o.Batch = "1",
    dtype: d.Dtype = None,
    kv_dtype: o.KvDtype = "bf16",
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            metavar="NAME",
            help="Kind of GPU at first (h100).",
            autocompletion=d.complete_hardware,
        ),
    ] = None,
    gpus: d.Gpus = None,
    tp: d.Tp = None,
    price: d.Price = None,
    hardware: d.Hardware = None,
    mtp: o.Mtp = False,
) -> None:
    """Write a workbook in live formulas: change a shape, a context, a format, a GPU or a price, and
    parameters, FLOPs, memory, speed and cost follow.

    Options set what it shows at first; everything may be changed in it.
    """
    from paramcalc.deploy import hardware as catalogue
    from paramcalc.views import arguments, output, workbook

    path = checked(out, force=force)
    unit = arguments.gpu(gpu or GPU, hardware or (), price)
    wish = workbook.wish(
        unit,
        context=o.positive("context", context) if context is not None else None,
        batch=o.positive("batch", batch),
        dtype=dtype,
        kv_dtype=kv_dtype,
        gpus=d.count("gpus", gpus) or d.count("tp", tp) or 1,
        tp=d.count("tp", tp) or 1,
        price=unit.price_per_hour_micro if price is not None else None,
        assumed=gpu is None,
    )
    loaded = [o.load(name, {}, mtp=mtp)[0] for name in models]
    workbook.write(path, loaded, catalogue.all(hardware or []), wish)
    output.say(f"wrote {len(loaded)} {'model' if len(loaded) == 1 else 'models'} to {path}")
    o.say_notes(*loaded)


def checked(out: str, *, force: bool) -> Path:
    """Return the path of a workbook that may be written. Raises ``InputError``."""
    path = Path(out)
    if path.suffix.lower() != ".xlsx":
        raise InputError(f"out = {out}: a workbook ends in .xlsx; name it so")
    if path.is_dir():
        raise InputError(f"out = {out}: is a directory; name a file")
    return free(out, force=force)

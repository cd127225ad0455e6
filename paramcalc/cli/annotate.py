"""``paramcalc annotate TABLE -o OUT``: figures beside the rows of a planner's own table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o
from paramcalc.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

MOST_NOTES = 20
"""Of models, in notes."""


def _column(role: str, says: str) -> Any:
    return typer.Option(f"--{role}-column", metavar="NAME", help=says)


@app.command()
def annotate(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="A .csv, .tsv, .xlsx or .xlsm with a heading.")
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Where to write; the same kind.")
    ],
    model_column: Annotated[
        str | None, _column("model", "Presets, hub ids, or files beside the table.")
    ] = None,
    gpu_column: Annotated[str | None, _column("gpu", "Kinds of GPU (paramcalc hardware).")] = None,
    gpus_column: Annotated[str | None, _column("gpus", "GPUs in all.")] = None,
    tp_column: Annotated[str | None, _column("tp", "Tensor-parallel ranks.")] = None,
    context_column: Annotated[
        str | None, _column("context", "Tokens of a sequence; 1k is 1,024.")
    ] = None,
    batch_column: Annotated[str | None, _column("batch", "Sequences at once.")] = None,
    dtype_column: Annotated[str | None, _column("dtype", "Formats of the weights.")] = None,
    kv_dtype_column: Annotated[str | None, _column("kv-dtype", "Formats of the cache.")] = None,
    price_column: Annotated[str | None, _column("price", "Dollars for an hour of one GPU.")] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="NAMES",
            help="What to append, with commas (paramcalc sweep --list-columns; fits, tp, pp).",
        ),
    ] = None,
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", metavar="NAME", help="The sheet (default: the first shown)."),
    ] = None,
    header_row: Annotated[
        str, typer.Option("--header-row", metavar="N", help="The row of the heading.")
    ] = "1",
    price: d.Price = None,
    hardware: d.Hardware = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
) -> None:
    """Append parameters, bytes, FLOPs, fit and speed to the rows of your own table.

    Everything else in the file stays as it is. A row that cannot be answered says why in the last
    column, paramcalc_error; one that does not fit has no times and no money. Columns that are not
    named are found by what they are called.
    """
    from paramcalc.views import annotate as view
    from paramcalc.views import output

    given = {
        "model": model_column,
        "gpu": gpu_column,
        "gpus": gpus_column,
        "tp": tp_column,
        "context": context_column,
        "batch": batch_column,
        "dtype": dtype_column,
        "kv_dtype": kv_dtype_column,
        "price": price_column,
    }
    names = [name.strip() for name in columns.split(",")] if columns is not None else []
    if columns is not None and not all(names):
        raise InputError(f"columns = {columns}: an empty name; remove the comma")
    row = o.positive("header_row", header_row)
    wish = view.Wish(table, out, given, names, sheet, row, hardware or (), price, force)
    done = view.write(wish)
    *notes, last = done.notes
    told = [
        f"{name}: {line}" for name, model in done.fleet.known.items() for line in o.notes(model)
    ]
    left = len(told) - MOST_NOTES
    more = [f"and {left:,} more notes on models"] if left > 0 else []
    for line in [*notes, *told[:MOST_NOTES], *more]:
        output.say(f"note: {line}")
    output.say(last)

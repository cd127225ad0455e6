"""``paramcalc hardware``: the accelerators, and one of them with the source of each figure."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def hardware(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[WORD]...",
            help="One by its name, or those that have all words.",
            autocompletion=d.complete_hardware,
        ),
    ] = None,
    files: d.Hardware = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """List accelerators: memory, bandwidth, dense rates, links, power; one by name with sources.

    A file of your own adds to the list: name, vendor, unit, memory, bandwidth and peaks, or
    extends: h100 with price_per_hour: 2.49.
    """
    from paramcalc.views import hardware_table, output

    way = o.one_of(json, csv, markdown)
    units, one = hardware_table.chosen(words or [], files or [])
    if way == "json":
        output.write_json([hardware_table.record(unit) for unit in units])
    elif way == "csv":
        output.write_csv([hardware_table.flat(unit) for unit in units])
    elif one:
        output.show(
            [hardware_table.cells(units[0], raw=way == "markdown")],
            markdown_way=way == "markdown",
            title=units[0].label,
            words=hardware_table.words(units[0], files or []),
        )
    elif way == "markdown":
        output.show([hardware_table.raw(units)], markdown_way=True)
    else:
        output.show([hardware_table.listing(units)], markdown_way=False)

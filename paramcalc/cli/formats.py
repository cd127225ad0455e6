"""``paramcalc formats MODEL``: the weights in every format, in bytes and bits a weight."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def formats(
    model: o.ModelName,
    dtype: Annotated[
        str | None,
        typer.Option(
            "--dtype",
            metavar="DTYPE",
            help="One format, tensor by tensor.",
            autocompletion=d.complete_weights,
        ),
    ] = None,
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """List the weights in every format: bytes, and bits a weight.

    bf16 to nvfp4 with their scales and zero points, and the file types of llama.cpp, which choose a
    type for each tensor. With --dtype each tensor of one format is shown.
    """
    from paramcalc.views import formats_view, output

    way = o.one_of(json, csv, markdown)
    shown, _ = o.load(model, {}, like, arch)
    if dtype is None:
        rows = formats_view.rows(shown)
        sections = [formats_view.section(rows)]
    else:
        rows = formats_view.tensors(shown, dtype)
        sections = [formats_view.tensor_section(shown, dtype, rows)]
    if way == "json":
        output.write_json(rows)
    elif way == "csv":
        output.write_csv(rows)
    else:
        title = f"{shown.name}  {shown.params.total:,} parameters"
        output.show(sections, markdown_way=way == "markdown", title=title)
    for line in o.notes(shown):
        typer.echo(f"paramcalc: note: {line}", err=True)

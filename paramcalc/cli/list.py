"""``paramcalc list``: the presets, filtered."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command(name="list")
def list_(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[WORD]...", help="Keep presets whose name or hub id has all."),
    ] = None,
    moe: Annotated[
        bool | None, typer.Option("--moe/--dense", help="Only mixtures of experts, or none.")
    ] = None,
    min_params: Annotated[
        str | None, typer.Option("--min", metavar="SIZE", help="At least so many parameters.")
    ] = None,
    max_params: Annotated[
        str | None, typer.Option("--max", metavar="SIZE", help="At most so many parameters.")
    ] = None,
    by: Annotated[
        str,
        typer.Option(
            "--by", metavar="COLUMN", help="Sort by name, parameters, active, context or kv."
        ),
    ] = "name",
    types: Annotated[
        bool, typer.Option("--types", help="List the model types of config.json that are read.")
    ] = False,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """List presets with total and active parameters, context, and KV cache per token.

    KV per token is the first token's, in BF16; sliding layers stop adding once their window is
    full.
    """
    from paramcalc.views import output, presets_table

    way = o.one_of(json, csv, markdown)
    if types:
        _types(words or [], way)
        return
    low = o.size("min", min_params) if min_params is not None else None
    high = o.size("max", max_params) if max_params is not None else None
    rows = presets_table.rows(words or [], moe, low, high, by)
    if not rows:
        raise InputError("no preset fits; loosen the words or the limits")
    if way == "json":
        output.write_json(rows)
    elif way == "csv":
        output.write_csv(rows)
    else:
        output.show([presets_table.section(rows)], markdown_way=way == "markdown")


def _types(words: list[str], way: str) -> None:
    """Show the model types that families read, those with all words in their name."""
    from paramcalc import families
    from paramcalc.views import output, tables

    found = [name for name in families.known() if all(word.lower() in name for word in words)]
    if not found:
        raise InputError("no type fits; loosen the words")
    rows = [{"model_type": name, "family": families.family_of(name)} for name in found]
    if way == "json":
        output.write_json(rows)
    elif way == "csv":
        output.write_csv(rows)
    else:
        section = tables.Section(f"{len(rows)} model types", [("", "left"), ("family", "left")])
        for row in rows:
            section.add(row["model_type"], row["family"])
        output.show([section], markdown_way=way == "markdown")

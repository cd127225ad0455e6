"""``paramcalc compare A B ...``: models side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def compare(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL MODEL...",
            help="Presets or YAML files, two or more.",
            autocompletion=o.complete_models,
        ),
    ],
    context: o.Context = None,
    batch: o.Batch = "1",
    kv_dtype: o.KvDtype = "bf16",
    mtp: o.Mtp = False,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Set models side by side: parameters by component, FLOPs, weights, KV cache.

    Each model is taken at its own context unless --context is given. With two models the
    difference is shown.
    """
    from paramcalc import formats
    from paramcalc.views import comparison, output

    way = o.one_of(json, csv, markdown)
    if len(models) < 2:
        raise InputError(f"compare {models[0]}: needs two models or more; name another")
    loaded = [o.load(name, {}, mtp=mtp)[0] for name in models]
    n = o.positive("context", context) if context is not None else None
    found = comparison.records(
        loaded, n, o.positive("batch", batch), formats.kv_format(kv_dtype).bits
    )
    if way == "json":
        output.write_json(found)
    elif way == "csv":
        output.write_csv(found)
    else:
        tables = comparison.sections(loaded, found, context=n, width=output.console().width)
        output.show(tables, markdown_way=way == "markdown")
    o.say_notes(*loaded)

"""``paramcalc explain MODEL``: each formula in symbols, with numbers, with its integer."""

from __future__ import annotations

import typer

from paramcalc.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def explain(
    model: o.ModelName,
    context: o.Context = None,
    set_: o.Set = None,
    mtp: o.Mtp = False,
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Show how each figure is made: the formula in symbols, in numbers, and its integer.

    The formulas are the ones that count: the same code runs on symbols.
    """
    from paramcalc.views import explanation as view
    from paramcalc.views import output
    from paramcalc.views.explain import explain as explain_model

    way = o.one_of(json, csv, markdown)
    fields = o.overrides({"context": context}, {}, set_)
    shown, _ = o.load(model, fields, like, arch, mtp=mtp)
    steps = explain_model(shown, shown.context)
    if way == "json":
        output.write_json([step._asdict() for step in steps])
    elif way == "csv":
        output.write_csv([step._asdict() for step in steps])
    elif way == "markdown":
        output.show(view.as_tables(steps), markdown_way=True, title=shown.name)
    else:
        screen = output.console()
        with output.plain_when_piped(screen):
            view.terminal(screen, shown, steps)
    o.say_notes(shown)

"""``paramcalc page``: the calculator as one HTML file."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def page(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Presets, YAML files or config.json files; all presets without any.",
            autocompletion=o.complete_models,
        ),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", metavar="FILE", help="Write this .html file.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Open it from this machine, for this machine only.")
    ] = False,
    port: Annotated[
        str | None, typer.Option("--port", metavar="N", help="With --serve; a free one by default.")
    ] = None,
) -> None:
    """Write the calculator as one HTML file that needs no network and no Python.

    It has sliders, boxes and switches for every field of the card, and counts exactly, by the
    formulas that this program counts by: paramcalc page -o calc.html.
    """
    from paramcalc.sources.loading import load
    from paramcalc.sources.presets import names
    from paramcalc.views import output
    from paramcalc.views.page import file, page

    if serve and out is not None:
        raise InputError("page: --out and --serve were both given; leave one out")
    if not serve and out is None:
        raise InputError("page: needs one of --out and --serve; write paramcalc page -o calc.html")
    if port is not None and not serve:
        raise InputError(f"port = {port}: is of --serve; add it, or leave --port out")
    number = o.size("port", port) if port is not None else 0
    path = file.checked(out, force=force) if out is not None else None
    loaded = [load(name) for name in models or names()]
    text = page(loaded)
    for name in models or ():
        o.say_shadowed(name)
    if models:
        o.say_notes(*loaded)
    if path is None:
        _serve(text, number)
        return
    file.write(path, text)
    many = "1 model" if len(loaded) == 1 else f"{len(loaded)} models"
    output.say(f"wrote {many} to {path}, {len(text.encode()) / 1000:,.0f} kB")


def _serve(text: str, port: int) -> None:
    from paramcalc.views.page.serving import address, serving

    with serving(text, port) as server:
        place = address(server)
        sys.stdout.write(f"{place}  (Ctrl-C ends it)\n")
        sys.stdout.flush()
        if sys.stdout.isatty():
            import webbrowser

            webbrowser.open(place)
        server.serve_forever()

"""``paramcalc preset``: a config.json written as a preset."""

from __future__ import annotations

import sys

import typer

from paramcalc.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def preset(model: o.ModelName, like: o.Like = None, arch: o.Arch = None) -> None:
    """Write a config.json as a preset: the card's fields, or its own keys where no field serves.

    The result is YAML on standard output, ready to be changed: paramcalc preset config.json >
    my.yaml.
    """
    from paramcalc.views.preset_file import preset_text

    shown, _ = o.load(model, {}, like, arch)
    sys.stdout.write(preset_text(shown))
    o.say_notes(shown)

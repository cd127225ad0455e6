"""``paramcalc audit``: a model's ledger against the tensors in files."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def audit(
    model: o.ModelName,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="A .safetensors file, its index or folder, or a .gguf file."
        ),
    ],
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Compare a model with what files hold, by their headers: names, shapes, how many.

    Leaves with exit code 0 where every tensor is there and nothing else, 1 where not.
    """
    from paramcalc.audit.compare import audit as run
    from paramcalc.sources.contents import read_all
    from paramcalc.sources.files import typed
    from paramcalc.views import audit_view, output

    way = o.one_of(json, csv, markdown)
    if not all(files):
        raise InputError("FILE = '': is empty; name a file or a folder of tensors")
    shown, _ = o.load(model, {}, like, arch)
    contents = read_all(typed(name) for name in files)
    found = run(shown, contents)
    if way == "json":
        output.write_json(audit_view.audit_record(shown.name, found))
    elif way == "csv":
        output.write_csv(audit_view.audit_rows(found))
    else:
        output.show(
            audit_view.audit_sections(found),
            markdown_way=way == "markdown",
            title=audit_view.audit_headline(shown.name, found),
        )
    for line in o.notes(shown):
        output.say(f"note: {line}")
    if not found.equal:
        raise typer.Exit(1)


def show_contents(name: str, way: str) -> None:
    """Show what a file or a folder of tensors holds, and the model that it or the config.json
    beside it describes. CSV is one table, the tensors; JSON has the model too."""
    from paramcalc.audit.packed import unpacked
    from paramcalc.sources.contents import read_file
    from paramcalc.sources.files import typed
    from paramcalc.sources.loading import load
    from paramcalc.views import audit_view, output, record
    from paramcalc.views.report import Report
    from paramcalc.views.summary import headline, words

    path = typed(name)
    contents = read_file(path)
    try:
        model, why = load(path), ""
    except InputError as error:
        model, why = None, str(error)
    report = None if model is None else Report(model, None, 1, "bf16")
    if way == "json":
        document = audit_view.contents_record(contents)
        document["model"] = None if report is None else record.record(report)
        output.write_json(document)
    elif way == "csv":
        output.write_csv(audit_view.contents_record(contents)["file_tensors"])
    else:
        markdown = way == "markdown"
        held = unpacked(contents)
        output.show(
            audit_view.contents_sections(contents, held),
            markdown_way=markdown,
            title=audit_view.contents_headline(path.resolve().name, contents, held),
        )
        if report is not None:
            typer.echo()
            output.show(
                report.sections(),
                markdown_way=markdown,
                title=headline(report.model, None),
                words=words(report.model),
            )
    if why:
        output.say(f"note: the tensors were read alone: {why}")
    for line in o.notes(model) if model is not None else []:
        output.say(f"note: {line}")

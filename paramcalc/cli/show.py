"""``paramcalc MODEL``: the report on one model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

if TYPE_CHECKING:
    from paramcalc.model import Model

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def show(
    model: o.ModelName,
    d: o.D = None,
    layers: o.Layers = None,
    heads: o.Heads = None,
    kv: o.Kv = None,
    head_dim: o.HeadDim = None,
    ff: o.Ff = None,
    vocab: o.Vocab = None,
    experts: o.Experts = None,
    top_k: o.TopK = None,
    context: o.Context = None,
    tie: o.Tie = None,
    gpt2: o.Gpt2 = None,
    gated: o.Gated = None,
    set_: o.Set = None,
    batch: o.Batch = "1",
    kv_dtype: o.KvDtype = "bf16",
    tensors: Annotated[
        bool, typer.Option("--tensors", help="List every tensor of the ledger.")
    ] = False,
    by_layer: Annotated[
        bool, typer.Option("--by-layer", help="List every layer by its number.")
    ] = False,
    mtp: o.Mtp = False,
    as_: o.As = None,
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Count a model: where its parameters sit, its FLOPs, its memory.

    With overrides the report shows the change against the preset. Sizes may be typed 8k, 128k,
    7B, 1.5M: 1k is 1,024 for tokens and 1,000 otherwise. --as NAME counts FLOPs by the rule of
    another tool or paper and says what it counts.
    """
    from paramcalc.sources.loading import is_contents
    from paramcalc.views import output
    from paramcalc.views.listing import layers_section, ledger_section, stored_section
    from paramcalc.views.report import Report
    from paramcalc.views.summary import headline, words

    way = o.one_of(json, csv, markdown)
    fields = o.overrides(
        {
            "d_model": d,
            "n_layers": layers,
            "n_heads": heads,
            "n_kv_heads": kv,
            "head_dim": head_dim,
            "d_ff": ff,
            "vocab_size": vocab,
            "n_experts": experts,
            "top_k": top_k,
            "context": context,
        },
        {"tie_embeddings": tie, "gpt2": gpt2, "gated_ffn": gated},
        set_,
    )
    plain = not fields and (batch, kv_dtype, like, arch) == ("1", "bf16", None, None)
    if plain and not (tensors or by_layer or mtp or as_) and is_contents(model):
        from paramcalc.cli.audit import show_contents

        show_contents(model, way)
        return
    shown, base = o.load(model, fields, like, arch, mtp=mtp)
    report = Report(shown, base, o.positive("batch", batch), kv_dtype)
    if as_ is not None:
        if tensors or by_layer:
            other = "--tensors" if tensors else "--by-layer"
            raise InputError(f"--as and {other}: only one listing; choose one")
        _as_other_tools(shown, base, as_, way)
    elif way in ("json", "csv"):
        from paramcalc.views import record

        if way == "json":
            output.write_json(record.record(report))
        elif by_layer:
            output.write_csv(record.layers(shown))
        elif tensors and shown.reading is not None:
            output.write_csv([record.stored_record(t) for t in shown.stored])
        elif tensors:
            output.write_csv([record.tensor_record(t) for t in shown.ledger.tensors])
        else:
            output.write_csv(record.rows(report))
    else:
        sections = [layers_section(shown)] if by_layer else []
        if tensors:
            sections.append(stored_section(shown) if shown.reading else ledger_section(shown))
        output.show(
            sections or report.sections(),
            markdown_way=way == "markdown",
            title=headline(shown, base),
            words=words(shown),
        )
    o.say_notes(shown)
    from paramcalc.rules import unused

    homeless = unused(shown.spec)
    for name in homeless:
        output.say(f"note: {name} has no place in this model")
    for place in o.kept(base, fields):
        output.say(f"note: {place} is stated there and stays; --set {place}=...")
    for name in o.idle(shown, base, fields):
        if name not in homeless:
            output.say(f"note: {name} changes nothing in this model")


def _as_other_tools(shown: Model, base: Model | None, name: str, way: str) -> None:
    """Write the model's FLOPs under a convention. Raises ``InputError`` for an unknown one."""
    from paramcalc.views import conventions_view, output
    from paramcalc.views.summary import headline, words

    if way == "json":
        output.write_json(conventions_view.record(shown, name))
    elif way == "csv":
        output.write_csv(conventions_view.rows_of(shown, name))
    else:
        output.show(
            conventions_view.sections(shown, name),
            markdown_way=way == "markdown",
            title=headline(shown, base),
            words=words(shown),
        )

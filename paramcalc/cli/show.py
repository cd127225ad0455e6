"""``paramcalc MODEL``: the report on one model."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import options as o

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
    mtp: Annotated[
        bool, typer.Option("--mtp", help="Count multi-token-prediction layers too.")
    ] = False,
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Count a model: where its parameters sit, its FLOPs, its memory.

    With overrides the report shows the change against the preset. Sizes may be typed 8k, 128k,
    7B, 1.5M: 1k is 1,024 for tokens and 1,000 otherwise.
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
    asked = (d, layers, heads, kv, head_dim, ff, vocab, experts, top_k, context, set_, like, arch)
    if is_contents(model) and not (any(asked) or tensors or by_layer or mtp):
        from paramcalc.cli.audit import show_contents

        show_contents(model, way)
        return
    shown, base = o.load(model, fields, like, arch)
    if mtp:
        shown = shown.with_(count_mtp=True)
    report = Report(shown, base, o.positive("batch", batch), kv_dtype)
    if way in ("json", "csv"):
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
    for line in o.notes(shown):
        typer.echo(f"paramcalc: note: {line}", err=True)
    from paramcalc.rules import unused

    homeless = unused(shown.spec)
    for name in homeless:
        typer.echo(f"paramcalc: note: {name} has no place in this model", err=True)
    for place in o.kept(base, fields):
        typer.echo(
            f"paramcalc: note: {place} is stated there and stays; --set {place}=...", err=True
        )
    for name in o.idle(shown, base, fields):
        if name not in homeless:
            typer.echo(f"paramcalc: note: {name} changes nothing in this model", err=True)

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
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Count a model: where its parameters sit, its FLOPs, its memory.

    With overrides the report shows the change against the preset. Sizes may be typed 8k, 128k,
    7B, 1.5M: 1k is 1,024 for tokens and 1,000 otherwise.
    """
    from paramcalc.views import output
    from paramcalc.views.report import Report, ledger_section, tensor_record

    way = o.one_of(json, csv, markdown)
    fields = o.overrides(
        {"d_model": d, "n_layers": layers, "n_heads": heads, "n_kv_heads": kv,
         "head_dim": head_dim, "d_ff": ff, "vocab_size": vocab, "n_experts": experts,
         "top_k": top_k, "context": context},
        {"tie_embeddings": tie, "gpt2": gpt2, "gated_ffn": gated},
        set_,
    )
    shown, base = o.load(model, fields)
    sequences = o.size("batch", batch)
    if sequences < 1:
        raise o.InputError(f"batch = {batch}: must be at least 1; raise it")
    report = Report(shown, base, sequences, kv_dtype)
    if way == "json":
        output.write_json(report.record())
        return
    if way == "csv":
        rows = [tensor_record(t) for t in shown.ledger.tensors] if tensors else report.rows()
        output.write_csv(rows)
        return
    from paramcalc.views import tables

    sections = [ledger_section(shown)] if tensors else report.sections()
    if way == "markdown":
        typer.echo(f"## {report.headline()}\n\n{report.summary()}\n\n{tables.markdown(sections)}")
    else:
        console = output.console()
        console.print(tables.fit(report.headline(), console.encoding), style="bold")
        console.print(tables.fit(report.summary(), console.encoding))
        tables.terminal(console, sections)
    for name in o.idle(shown, base, fields):
        typer.echo(f"paramcalc: note: {name} changes nothing in this model", err=True)

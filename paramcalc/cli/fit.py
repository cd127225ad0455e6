"""``paramcalc fit MODEL --gpu NAME``: does it fit, by how much, and what would make it fit."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def fit(
    model: o.ModelName,
    gpu: d.Gpu,
    gpus: d.Gpus = None,
    tp: d.Tp = None,
    pp: d.Pp = None,
    ep: d.Ep = None,
    dp: d.Dp = None,
    context: o.Context = None,
    batch: Annotated[str, typer.Option("--batch", metavar="N", help="Sequences at once.")] = "1",
    dtype: d.Dtype = None,
    kv_dtype: o.KvDtype = "bf16",
    utilization: d.Utilization = "0.9",
    page: d.Page = "16",
    reserve: d.Reserve = None,
    max_seqs: d.MaxSeqs = None,
    max_batched_tokens: d.MaxBatched = None,
    kinds: Annotated[
        str,
        typer.Option(
            "--kinds",
            metavar="WORDS",
            help="Kinds whose fewest GPUs are listed: h100,mi300x or nvidia; all, none.",
        ),
    ] = "all",
    price: d.Price = None,
    hardware: d.Hardware = None,
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Say whether a model fits: weights, KV cache, activations and reserve, GPU by GPU.

    Shows the gap in bytes, the longest context and the largest batch that fit, the changes that
    would make it fit, and the fewest GPUs of each kind. --gpus chooses tensor and pipeline sizes
    unless --tp, --pp and --dp do.
    """
    from paramcalc.views import fit_view, output
    from paramcalc.views import settings as st

    way = o.one_of(json, csv, markdown)
    shown, _ = o.load(model, {}, like, arch)
    asked = st.Asked(
        shown,
        gpu,
        st.Sharing(gpus, tp, pp, ep, dp),
        st.Tuning(utilization, page, reserve, max_seqs, max_batched_tokens),
        dtype,
        kv_dtype,
        price,
        hardware or (),
    )
    answer = st.fit(asked, context, batch, kinds)
    found = answer.fit
    if way == "json":
        output.write_json(fit_view.record(answer))
    elif way == "csv":
        output.write_csv(fit_view.rows(answer))
    else:
        output.show(
            fit_view.sections(answer, whole=way == "markdown"),
            markdown_way=way == "markdown",
            title=fit_view.headline(found),
            words=fit_view.words(found),
        )
    for line in [*o.notes(shown), *fit_view.notes(found)]:
        typer.echo(f"paramcalc: note: {line}", err=True)

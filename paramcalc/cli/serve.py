"""``paramcalc serve MODEL --gpu NAME``: prefill and decode on a roofline, with their cost."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def serve(
    model: o.ModelName,
    gpu: d.Gpu,
    gpus: d.Gpus = None,
    tp: d.Tp = None,
    pp: d.Pp = None,
    ep: d.Ep = None,
    dp: d.Dp = None,
    prompt: Annotated[
        str, typer.Option("--prompt", metavar="SIZE", help="Tokens of a request's prompt.")
    ] = "1k",
    output: Annotated[
        str, typer.Option("--output", metavar="SIZE", help="Tokens written for a request.")
    ] = "256",
    batch: Annotated[str, typer.Option("--batch", metavar="N", help="Requests at once.")] = "16",
    dtype: d.Dtype = None,
    kv_dtype: o.KvDtype = "bf16",
    flops_efficiency: Annotated[
        str,
        typer.Option("--flops-efficiency", metavar="SHARE", help="Of the peak FLOP/s, assumed."),
    ] = "60%",
    bandwidth_efficiency: Annotated[
        str,
        typer.Option("--bandwidth-efficiency", metavar="SHARE", help="Of the bandwidth, assumed."),
    ] = "80%",
    hop: Annotated[
        str,
        typer.Option("--hop", metavar="US", help="Microseconds an all-reduce waits, assumed."),
    ] = "10",
    utilization: d.Utilization = "0.9",
    page: d.Page = "16",
    reserve: d.Reserve = None,
    max_seqs: d.MaxSeqs = None,
    max_batched_tokens: d.MaxBatched = None,
    price: d.Price = None,
    hardware: d.Hardware = None,
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Show how fast and at what cost a model serves: prefill, decode, what bounds them.

    A roofline: each step takes as long as its FLOPs or its memory traffic, at an assumed share of
    the datasheet's peak, plus what ranks exchange. Money is shown only where a price is given.
    """
    from paramcalc.views import output as out
    from paramcalc.views import serve_view
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
    work = (prompt, output, batch)
    service = st.serve(asked, work, flops_efficiency, bandwidth_efficiency, hop)
    if way == "json":
        out.write_json(serve_view.record(service))
    elif way == "csv":
        out.write_csv(serve_view.rows(service))
    else:
        out.show(
            serve_view.sections(service),
            markdown_way=way == "markdown",
            title=serve_view.headline(service),
            words=serve_view.words(service),
        )
    for line in [*o.notes(shown), *serve_view.notes(service)]:
        typer.echo(f"paramcalc: note: {line}", err=True)

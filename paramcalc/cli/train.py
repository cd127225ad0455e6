"""``paramcalc train MODEL --gpu NAME``: memory, work, time and money of a training run."""

from __future__ import annotations

from typing import Annotated

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o
from paramcalc.cli import train_options as t
from paramcalc.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_Text = str | None


@app.command()
def train(
    model: o.ModelName,
    gpu: d.Gpu,
    tokens: Annotated[
        _Text, typer.Option("--tokens", metavar="N", help="Tokens of the run (default: one step).")
    ] = None,
    gpus: d.Gpus = None,
    tp: d.Tp = None,
    pp: d.Pp = None,
    ep: d.Ep = None,
    dp: d.Dp = None,
    cp: Annotated[_Text, typer.Option("--cp", metavar="N", help="Context-parallel ranks.")] = None,
    etp: Annotated[
        _Text, typer.Option("--etp", metavar="N", help="Ranks that share one expert.")
    ] = None,
    seq: Annotated[
        _Text, typer.Option("--seq", metavar="SIZE", help="Tokens of a sequence (to 8k).")
    ] = None,
    micro_batch: Annotated[
        str, typer.Option("--micro-batch", metavar="N", help="Sequences a GPU takes at once.")
    ] = "1",
    global_batch: Annotated[
        _Text,
        typer.Option("--global-batch", metavar="N", help="Sequences of one step (one a dp rank)."),
    ] = None,
    global_batch_tokens: Annotated[
        _Text,
        typer.Option("--global-batch-tokens", metavar="N", help="The same in tokens."),
    ] = None,
    optimizer: Annotated[
        str,
        typer.Option(
            "--optimizer",
            metavar="NAME",
            help="adamw, adamw-bf16, adamw-8bit, adafactor, lion, muon, sgd, sgd-momentum.",
        ),
    ] = "adamw",
    dtype: Annotated[
        _Text,
        typer.Option(
            "--dtype", metavar="DTYPE", help="Trained weights: bf16 (default), fp16, fp32."
        ),
    ] = None,
    grad_dtype: Annotated[
        _Text, typer.Option("--grad-dtype", metavar="DTYPE", help="Gradients (as the weights).")
    ] = None,
    master: Annotated[
        bool | None,
        typer.Option("--master/--no-master", help="An FP32 copy beside 16-bit weights."),
    ] = None,
    zero: Annotated[
        str, typer.Option("--zero", metavar="STAGE", help="ZeRO 0 to 3, or fsdp (3).")
    ] = "1",
    shard_over: Annotated[
        _Text, typer.Option("--shard-over", metavar="N", help="Ranks of a sharding group (hybrid).")
    ] = None,
    recompute: Annotated[
        str, typer.Option("--recompute", metavar="KIND", help="none, selective or full.")
    ] = "none",
    attention: Annotated[
        str, typer.Option("--attention", metavar="KIND", help="Kernels: flash, sdpa or eager.")
    ] = "flash",
    sequence_parallel: Annotated[
        bool,
        typer.Option("--sequence-parallel/--no-sequence-parallel", help="Share out tokens too."),
    ] = True,
    schedule: Annotated[
        str, typer.Option("--schedule", metavar="KIND", help="1f1b, gpipe or interleaved.")
    ] = "1f1b",
    virtual: Annotated[
        _Text, typer.Option("--virtual", metavar="N", help="Chunks a GPU, interleaved.")
    ] = None,
    lora_rank: Annotated[
        _Text, typer.Option("--lora-rank", metavar="R", help="Train adapters of this rank.")
    ] = None,
    lora_targets: Annotated[
        _Text, typer.Option("--lora-targets", metavar="LIST", help="q,k,v,o,... (all-linear).")
    ] = None,
    base_dtype: Annotated[
        _Text,
        typer.Option(
            "--base-dtype", metavar="DTYPE", help="Weights under adapters (bf16); QLoRA nf4-dq."
        ),
    ] = None,
    mfu: Annotated[
        _Text, typer.Option("--mfu", metavar="SHARE", help="Model FLOPs utilization (0.4).")
    ] = None,
    tokens_per_second: Annotated[
        _Text,
        typer.Option("--tokens-per-second", metavar="N", help="Of all GPUs; gives the MFU."),
    ] = None,
    compute: Annotated[
        _Text, typer.Option("--compute", metavar="DTYPE", help="Format of the peak FLOP/s (bf16).")
    ] = None,
    pue: Annotated[
        str, typer.Option("--pue", metavar="RATIO", help="Power of the building over the GPUs'.")
    ] = "1",
    kept: Annotated[
        bool, typer.Option("--kept", help="List each tensor kept for the backward pass.")
    ] = False,
    chinchilla: Annotated[
        bool, typer.Option("--chinchilla", help="Add compute-optimal tokens and sizes.")
    ] = False,
    reserve: d.Reserve = None,
    price: d.Price = None,
    hardware: d.Hardware = None,
    like: o.Like = None,
    arch: o.Arch = None,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Plan a training run: memory of each GPU, FLOPs, days, energy, money, checkpoints.

    Without --tp, --pp and --dp the smallest tp x pp that fits --gpus is taken. Without --tokens
    the figures are those of one step.
    """
    from paramcalc.deploy.parallel import Layout
    from paramcalc.views import arguments, kept_view, output, settings, train_view

    way = o.one_of(json, csv, markdown)
    if kept and chinchilla and way != "json":
        raise InputError("--kept and --chinchilla: only --json shows both; choose one")
    shown, _ = o.load(model, {}, like, arch)
    kind = arguments.gpu(gpu, hardware or (), price)
    base = Layout(cp=d.count("cp", cp) or 1, etp=d.count("etp", etp))
    how = t.recipe(
        shown,
        optimizer=optimizer,
        dtype=dtype,
        grad_dtype=grad_dtype,
        master=master,
        zero=zero,
        shard_over=shard_over,
        seq=seq,
        micro_batch=micro_batch,
        batches=(global_batch, global_batch_tokens),
        recompute=recompute,
        attention=attention,
        sequence_parallel=sequence_parallel,
        pipeline=(schedule, virtual),
        adapters=(lora_rank, lora_targets, base_dtype),
        reserve=reserve,
    )
    sharing = settings.Sharing(gpus, tp, pp, ep, dp)
    plan = settings.plan(shown, kind, sharing, base, how)
    run = settings.run(plan, kind, tokens, mfu, tokens_per_second, compute, pue)
    answer = train_view.Answer(run, chinchilla)
    if way == "json":
        tensors = {"kept": kept_view.rows(run.plan)} if kept else {}
        output.write_json(train_view.record(answer) | tensors)
    elif way == "csv":
        output.write_csv(kept_view.rows(run.plan) if kept else train_view.rows(answer))
    else:
        output.show(
            kept_view.sections(run.plan) if kept else train_view.sections(answer),
            markdown_way=way == "markdown",
            title=train_view.headline(answer),
            words=train_view.words(answer),
        )
    for line in [*o.notes(shown), *train_view.notes(answer)]:
        typer.echo(f"paramcalc: note: {line}", err=True)

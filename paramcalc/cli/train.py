"""``paramcalc train MODEL --gpu NAME``: memory, work, time and money of a training run."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o
from paramcalc.errors import InputError

if TYPE_CHECKING:
    from paramcalc.deploy.hardware import Accelerator
    from paramcalc.deploy.parallel import Layout
    from paramcalc.deploy.recipe import Recipe
    from paramcalc.deploy.training import Plan
    from paramcalc.model import Model

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
        _Text, typer.Option("--seq", metavar="SIZE", help="Tokens of a sequence; 1k is 1,024.")
    ] = None,
    micro_batch: Annotated[
        str, typer.Option("--micro-batch", metavar="N", help="Sequences a GPU takes at once.")
    ] = "1",
    global_batch: Annotated[
        _Text, typer.Option("--global-batch", metavar="N", help="Sequences of one step.")
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
        str, typer.Option("--dtype", metavar="DTYPE", help="Trained weights: bf16, fp16 or fp32.")
    ] = "bf16",
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
        str, typer.Option("--lora-targets", metavar="LIST", help="q,k,v,o,... or all-linear.")
    ] = "all-linear",
    base_dtype: Annotated[
        str,
        typer.Option("--base-dtype", metavar="DTYPE", help="Weights under adapters; QLoRA nf4-dq."),
    ] = "bf16",
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
    from paramcalc.deploy.training_run import Run
    from paramcalc.views import output, train_view

    way = o.one_of(json, csv, markdown)
    shown, _ = o.load(model, {}, like, arch)
    kind = d.accelerator(gpu, hardware, price)
    asked = Layout(cp=d.count("cp", cp) or 1, ep=d.count("ep", ep) or 1, etp=d.count("etp", etp))
    how = _recipe(
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
    sizes = {"tp": tp, "pp": pp, "dp": dp}
    run = Run(
        _plan(shown, kind, asked, gpus, sizes, how),
        kind,
        d.count("tokens", tokens),
        None if mfu is None else d.share("mfu", mfu),
        d.count("tokens_per_second", tokens_per_second),
        compute,
        _ratio("pue", pue),
    )
    answer = train_view.Answer(run, chinchilla)
    if way == "json":
        output.write_json(train_view.record(answer))
    elif way == "csv":
        output.write_csv(train_view.rows(answer))
    else:
        output.show(
            train_view.sections(answer),
            markdown_way=way == "markdown",
            title=train_view.headline(answer),
            words=train_view.words(answer),
        )
    for line in [*o.notes(shown), *train_view.notes(answer)]:
        typer.echo(f"paramcalc: note: {line}", err=True)


def _plan(
    model: Model,
    kind: Accelerator,
    asked: Layout,
    gpus: _Text,
    sizes: dict[str, _Text],
    how: Recipe,
) -> Plan:
    """The plan of the sizes stated; what is free fills up the GPUs."""
    from paramcalc.deploy.training import Plan
    from paramcalc.deploy.training_fit import chosen

    total = d.count("gpus", gpus)
    stated = {name: size for name, text in sizes.items() if (size := d.count(name, text))}
    if total is not None and not stated:
        return chosen(model, total, asked, how, kind.visible_bytes)
    layout = asked._replace(**stated)
    if total is not None and total != layout.gpus:
        shares = {**stated, **({"cp": asked.cp} if asked.cp > 1 else {})}
        words = " x ".join(f"{n} {s}" for n, s in shares.items())
        if total % layout.gpus:
            raise InputError(f"gpus = {total:,}: {words} must divide it; change one of them")
        if "dp" in stated:
            raise InputError(f"gpus = {total:,}: {words} is {layout.gpus:,}; leave one of them out")
        layout = layout._replace(dp=total // layout.gpus)
    return Plan(model, layout, how)


def _recipe(
    model: Model,
    *,
    optimizer: str,
    dtype: str,
    grad_dtype: _Text,
    master: bool | None,
    zero: str,
    shard_over: _Text,
    seq: _Text,
    micro_batch: str,
    batches: tuple[_Text, _Text],
    recompute: str,
    attention: str,
    sequence_parallel: bool,
    pipeline: tuple[str, _Text],
    adapters: tuple[_Text, str, str],
    reserve: _Text,
) -> Recipe:
    """The settings as typed. Raises ``InputError``."""
    from paramcalc.deploy import optimizers
    from paramcalc.deploy.activations.megatron import RECOMPUTE
    from paramcalc.deploy.lora import Lora
    from paramcalc.deploy.recipe import ATTENTION, Recipe, pick
    from paramcalc.deploy.schedule import KINDS, Schedule

    stage = {"fsdp": "3"}.get(zero.strip().lower(), zero)
    if stage not in ("0", "1", "2", "3"):
        raise InputError(f"zero = {zero}: must be 0, 1, 2, 3 or fsdp; use one")
    kind, chunks = pipeline
    rank, targets, base = adapters
    default = 2 if kind == "interleaved" else 1
    found = Recipe(
        optimizer=optimizers.find(optimizer),
        dtype=dtype,
        grad_dtype=grad_dtype,
        master=master,
        zero=int(stage),
        shard_over=d.count("shard_over", shard_over),
        seq=None if seq is None else _length("seq", seq),
        micro_batch=o.positive("micro_batch", micro_batch),
        recompute=pick("recompute", recompute, RECOMPUTE),
        attention=pick("attention", attention, ATTENTION),
        sequence_parallel=sequence_parallel,
        schedule=Schedule(pick("schedule", kind, KINDS), d.count("virtual", chunks) or default),
        lora=None if rank is None else Lora(o.positive("lora_rank", rank), _names(targets)),
        base_dtype=base,
        reserve=None if reserve is None else o.size("reserve", reserve),
    )
    if rank is None and base != "bf16":
        raise InputError(f"base_dtype = {base}: only under adapters; add --lora-rank")
    return found._replace(global_batch=_batch(batches, found.sequence(model)))


def _batch(batches: tuple[_Text, _Text], seq: int) -> int | None:
    """Sequences of a step, typed as such or in tokens."""
    sequences, tokens = batches
    if sequences is not None and tokens is not None:
        raise InputError("global_batch and global_batch_tokens: state one of them")
    if tokens is None:
        return d.count("global_batch", sequences)
    total = _length("global_batch_tokens", tokens)
    if total % seq:
        near = -(-total // seq) * seq
        raise InputError(
            f"global_batch_tokens = {total:,}: must be a multiple of seq = {seq:,}; take {near:,}"
        )
    return total // seq


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.replace(",", " ").split() if name)


def _length(name: str, text: str) -> int:
    """Tokens of a sequence or batch, of which 1k is 1,024."""
    from paramcalc.spelling import parse_size

    try:
        value = parse_size(text, tokens=True)
    except ValueError as error:
        raise InputError(f"{name} = {text}: {error}") from None
    if value < 1:
        raise InputError(f"{name} = {text}: must be at least 1; raise it")
    return value


def _ratio(name: str, text: str) -> Fraction:
    """A typed decimal of at most 100. Raises ``InputError``."""
    try:
        value = Decimal(text.strip())
    except InvalidOperation:
        value = Decimal("nan")
    if not value.is_finite() or not 1 <= value <= 100:
        raise InputError(f"{name} = {text}: must be a number from 1 to 100; as 1.2")
    return Fraction(value)

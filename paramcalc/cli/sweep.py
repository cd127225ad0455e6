"""``paramcalc sweep``: grids of shapes."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

if TYPE_CHECKING:
    from paramcalc.deploy.hardware import Accelerator

app = typer.Typer(rich_markup_mode=None, add_completion=False)


def _axis(*spellings: str, says: str) -> Any:
    return typer.Option(*spellings, metavar="VALUES", help=says)


@app.command()
def sweep(
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL]...",
            help="Presets or YAML files (llama3-8b).",
            autocompletion=o.complete_models,
        ),
    ] = None,
    d: Annotated[str | None, _axis("--d", says="d_model.")] = None,
    layers: Annotated[str | None, _axis("--layers", "-L", says="Number of layers.")] = None,
    heads: Annotated[str | None, _axis("--heads", "-H", says="Number of query heads.")] = None,
    kv: Annotated[str | None, _axis("--kv", says="Number of key/value heads.")] = None,
    head_dim: Annotated[str | None, _axis("--head-dim", says="Width of a head.")] = None,
    ff: Annotated[str | None, _axis("--ff", says="d_ff.")] = None,
    vocab: Annotated[str | None, _axis("--vocab", "-V", says="Size of the vocabulary.")] = None,
    experts: Annotated[str | None, _axis("--experts", "-E", says="Experts; 0 is dense.")] = None,
    top_k: Annotated[str | None, _axis("--top-k", "-k", says="Experts of a token.")] = None,
    context: Annotated[str | None, _axis("--context", "-n", says="Tokens in context.")] = None,
    batch: Annotated[str | None, _axis("--batch", says="Sequences in the KV cache.")] = None,
    dtype: Annotated[str | None, _axis("--dtype", says="Formats of the weights.")] = None,
    kv_dtype: Annotated[str | None, _axis("--kv-dtype", says="Formats of the cache.")] = None,
    gpu: Annotated[str | None, _axis("--gpu", says="Kinds of GPU (paramcalc hardware).")] = None,
    gpus: Annotated[str | None, _axis("--gpus", says="GPUs in all: gpus/tp replicas.")] = None,
    tp: Annotated[
        str | None, _axis("--tp", says="GPUs that share one replica; 1 unless given.")
    ] = None,
    tie: Annotated[str | None, _axis("--tie", says="Tied head: true, false or both.")] = None,
    gated: Annotated[str | None, _axis("--gated", says="Gated FFN: true,false.")] = None,
    gpt2: Annotated[str | None, _axis("--gpt2", says="As GPT-2: true,false.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUES", help="Any other field as an axis."),
    ] = None,
    columns: Annotated[
        str | None, typer.Option("--columns", metavar="NAMES", help="Columns, with commas.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="CONDITION", help="Keep rows: 'params < 8e9'."),
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", metavar="NAME=SIZE", help="Keep rows near a value.")
    ] = None,
    within: Annotated[
        str | None, typer.Option("--within", metavar="PERCENT", help="How near: 1%.")
    ] = None,
    top: Annotated[
        str | None, typer.Option("--top", metavar="N", help="The N smallest by --by.")
    ] = None,
    by: Annotated[str | None, typer.Option("--by", metavar="NAME", help="Sort by.")] = None,
    descending: Annotated[
        bool, typer.Option("--descending", help="The largest first instead.")
    ] = False,
    smallest: Annotated[
        str | None, typer.Option("--min", metavar="NAME", help="The row with the smallest.")
    ] = None,
    largest: Annotated[
        str | None, typer.Option("--max", metavar="NAME", help="The row with the largest.")
    ] = None,
    pareto: Annotated[
        str | None,
        typer.Option(
            "--pareto", metavar="NAMES", help="Rows no other beats; -NAME: larger is better."
        ),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Print how many rows there are.")] = False,
    rows: Annotated[str, typer.Option("--rows", metavar="N", help="Rows on the screen.")] = "20",
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="Write .csv .jsonl .parquet .xlsx, or a folder/ of parts."
        ),
    ] = None,
    part_rows: Annotated[
        str | None, typer.Option("--part-rows", metavar="N", help="Rows of a part, about 4M.")
    ] = None,
    workers: Annotated[
        str | None, typer.Option("--workers", metavar="N", help="Processes that write parts.")
    ] = None,
    dask: Annotated[
        str | None, typer.Option("--dask", metavar="ADDRESS", help="A Dask scheduler: tcp://...")
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw .png .svg .html, or - here."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about sizes.")] = False,
    price: Annotated[
        str | None, typer.Option("--price", metavar="DOLLARS", help="Price of a GPU-hour.")
    ] = None,
    hardware: Annotated[
        list[str] | None,
        typer.Option("--hardware", metavar="FILE", help="Your own accelerators, with prices."),
    ] = None,
    list_columns: Annotated[
        bool, typer.Option("--list-columns", help="Print the names of all columns.")
    ] = False,
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Evaluate a grid of shapes.

    VALUES are a list 8,32, a range 16:96:8 with both ends, a geometric range 4k:128k:x2, or an
    expression of other fields: --heads d/128 --ff "ceil(3.5*d, 256)". Impossible shapes are left
    out and counted. Rows keep the order of the axes, the last one fastest; what ties keeps it too.
    GPUs share a model by --tp alone: fit, serve and annotate know pipeline stages, fit and serve
    spread experts too.
    """
    from paramcalc.sweep.request import BASE, PART_ROWS, Plan, Request
    from paramcalc.views import sweep_view as view

    gc.enable()  # a sweep may run for hours
    way = o.one_of(json, csv, markdown)
    if list_columns:
        view.columns(way, _kinds(gpu, hardware))
        return
    if part_rows is not None and not (out or "").endswith(("/", os.sep)):
        raise InputError(f"part_rows = {part_rows}: is of a folder of parts; give --out folder/")
    axes = {
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
        "batch": batch,
        "dtype": dtype,
        "kv_dtype": kv_dtype,
        "gpu": gpu,
        "gpus": gpus,
        "tp": tp,
        "tie_embeddings": tie,
        "gated_ffn": gated,
        "gpt2": gpt2,
    }
    given = [(name, text) for name, text in axes.items() if text is not None]
    given += o.assigned(set_, "must be field=values; write --set window=1k,4k")
    request = Request(
        models=tuple(models or [BASE]),
        axes=tuple(given),
        columns=_names(columns),
        where=(*(where or []), *_near(target, within)),
        **_order(top, by, descending, smallest, largest),
        pareto=_names(pareto),
        part_rows=PART_ROWS if part_rows is None else o.positive("part_rows", part_rows),
        hardware=tuple(hardware or ()),
        price=price,
    )
    plan = Plan(request, with_axes=plot is not None)
    view.answer(
        plan,
        way,
        view.Wish(
            count,
            o.positive("rows", rows),
            out,
            force=force,
            yes=yes,
            workers=None if workers is None else o.positive("workers", workers),
            dask=dask,
            plot=plot,
        ),
    )
    for name in plan.request.models:
        o.say_shadowed(name)
    o.say_notes(*plan.models)


def _kinds(gpu: str | None, files: list[str] | None) -> list[Accelerator]:
    """The kinds of GPU that are named, else those of a person's own files."""
    from paramcalc.deploy import hardware
    from paramcalc.sweep.axes import switch

    if gpu is not None:
        return [hardware.find(str(name), files or []) for name in switch("gpu", gpu).values or ()]
    return hardware.given(files or [])


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",")) if text is not None else ()


def _order(
    top: str | None, by: str | None, descending: bool, smallest: str | None, largest: str | None
) -> dict[str, Any]:
    if sum(x is not None for x in (by, smallest, largest)) > 1:
        raise InputError("--by, --min and --max: each sorts the rows; choose one")
    if descending and (by is None or top is None):
        raise InputError("--descending: is the order of --top N --by NAME; write them too")
    if smallest is not None or largest is not None:
        return {"top": 1, "by": smallest or largest, "descending": largest is not None}
    if (top is None) != (by is None):
        raise InputError("--top and --by: one needs the other; write --top 20 --by params")
    if top is None:
        return {}
    return {"top": o.positive("top", top), "by": by, "descending": descending}


def _near(target: str | None, within: str | None) -> list[str]:
    """A condition for ``--target params=7e9 --within 1%``."""
    if target is None:
        if within is not None:
            raise InputError(f"within = {within}: is how near to --target; add --target params=7e9")
        return []
    within = "1%" if within is None else within
    from fractions import Fraction

    from paramcalc.spelling import parse_size

    name, equals, text = target.partition("=")
    if not equals:
        raise InputError(f"target = {target}: must be name=size; write --target params=7e9")
    try:
        value = parse_size(text)
        share = Fraction(within.strip().removesuffix("%")) / 100
    except (ValueError, ZeroDivisionError):
        raise InputError(
            f"target = {target} within {within}: must be a size and a percentage; as 7e9 and 1%"
        ) from None
    if not 0 <= share < 1:
        raise InputError(f"within = {within}: must be from 0% to below 100%; lower it")
    low, high = value * (1 - share), value * (1 + share)
    top, bottom = low.numerator, low.denominator
    return [
        f"{name.strip()} >= {-(-top // bottom)} and {name.strip()}"
        f" <= {high.numerator // high.denominator}"
    ]

"""``paramcalc moe``: how a batch falls on the experts of a model."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

import typer

from paramcalc.cli import options as o
from paramcalc.errors import InputError

app = typer.Typer(rich_markup_mode=None, add_completion=False)

MOST_BYTES = 1_000_000
"""Of a file of loads."""


@app.command()
def moe(
    model: o.ModelName,
    tokens: Annotated[
        str, typer.Option("--tokens", metavar="T", help="Tokens routed together; 1k is 1,024.")
    ],
    capacity_factor: Annotated[
        str | None,
        typer.Option(
            "--capacity-factor", metavar="C", help="Slots over the even load (1.25), or none."
        ),
    ] = None,
    min_capacity: Annotated[
        str | None,
        typer.Option("--min-capacity", metavar="N", help="Fewest slots of an expert (0)."),
    ] = None,
    block: Annotated[
        str, typer.Option("--block", metavar="ROWS", help="Rows a dropless block is padded to.")
    ] = "128",
    skew: Annotated[
        str | None,
        typer.Option("--skew", metavar="S", help="Also route by Zipf: shares as 1 / rank^S."),
    ] = None,
    loads: Annotated[
        str | None,
        typer.Option(
            "--loads", metavar="LIST", help="Also route by these loads: 5,3,1,... or a file."
        ),
    ] = None,
    ep: Annotated[
        str, typer.Option("--ep", metavar="N", help="Ranks that share out the experts.")
    ] = "1",
    seed: Annotated[str, typer.Option("--seed", metavar="N", help="Of the drawn batches.")] = "0",
    json: o.Json = False,
    csv: o.Csv = False,
    markdown: o.Markdown = False,
) -> None:
    """Show slots, drops, padding and imbalance of the experts for a batch of tokens.

    Routings: balanced, uniform at random, and a skewed one with --skew or --loads.
    """
    from paramcalc.deploy.moe_figures import answer
    from paramcalc.deploy.moe_load import FACTOR, Batch, check, experts_of, routings
    from paramcalc.views import moe_view, output

    way = o.one_of(json, csv, markdown)
    factor: Fraction | None = FACTOR
    if capacity_factor is not None:
        none = capacity_factor.strip().lower() == "none"
        factor = None if none else _number("capacity_factor", capacity_factor)
    if factor is None and min_capacity is not None:
        raise InputError(
            f"min_capacity = {min_capacity}: without a capacity factor there are no slots; leave"
            " it out"
        )
    batch = Batch(
        _tokens(tokens),
        factor,
        o.positive("block", block),
        0 if min_capacity is None else o.size("min_capacity", min_capacity),
        o.positive("ep", ep),
        o.size("seed", seed),
        capacity_factor is None,
    )
    exponent = None if skew is None else _number("skew", skew)
    given = None if loads is None else _loads(loads)
    shown, _ = o.load(model, {})
    found = []
    for experts in experts_of(shown.ledger):
        check(experts, batch)
        found.append((experts, answer(experts, batch, routings(experts, exponent, given))))
    if way == "json":
        output.write_json(moe_view.record(shown.name, batch, found))
    elif way == "csv":
        output.write_csv(moe_view.rows(found))
    else:
        raw = way == "markdown"
        output.show(
            moe_view.sections(batch, found, raw=raw),
            markdown_way=raw,
            title=moe_view.headline(shown.name, batch),
        )
    for line in o.notes(shown):
        typer.echo(f"paramcalc: note: {line}", err=True)


def _tokens(text: str) -> int:
    """Tokens, of which 1k is 1,024; the limits are the batch's."""
    from paramcalc.spelling import parse_size

    try:
        return parse_size(text, tokens=True)
    except ValueError as error:
        raise InputError(f"tokens = {text}: {error}") from None


def _number(name: str, text: str) -> Fraction:
    """Return a typed decimal number exactly. Raises ``InputError``."""
    from paramcalc.views.settings import decimal

    value = decimal(text)
    if value is None:
        raise InputError(f"{name} = {text}: is not a number of plain size; write it as 1.25")
    return value


def _loads(text: str) -> tuple[Fraction, ...]:
    """Return the loads of a list, or of a file that holds one, parted by commas or spaces."""
    from paramcalc.sources.files import read_text, typed

    if "," not in text:
        text = read_text(typed(text), MOST_BYTES)
    return tuple(_number("loads", word) for word in text.replace(",", " ").split())

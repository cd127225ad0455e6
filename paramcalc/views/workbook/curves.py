"""Models side by side, and the curve of attention against context."""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.quantities import flops
from paramcalc.symbols import lift, symbol
from paramcalc.views.workbook import checks
from paramcalc.views.workbook.book import COLOURS, Book, Page, letters
from paramcalc.views.workbook.column import Column
from paramcalc.views.workbook.deployment import DeploymentSheet
from paramcalc.views.workbook.inputs import MOST_TOKENS
from paramcalc.views.workbook.steps import Steps
from paramcalc.views.workbook.summary import Summary

CONTEXTS = tuple(2**power for power in range(9, 21))
"""Tokens at which the curve is drawn, at first."""
SCORES = " attention"


class Compared(NamedTuple):
    """A row of sheet Compare: the figure it shows, a label where the figure's own says too little,
    and the unit that it is divided into."""

    key: str
    label: str = ""
    unit: str = ""
    digits: int = 0
    """The unit is a power of ten of the figure's own."""
    style: str = "whole"


BYTES = (
    ("weights", "weights, in the chosen format"),
    ("kv_bytes", "KV cache of all sequences"),
    ("needed", "needed on one GPU"),
    ("free", "free on one GPU"),
)
STEP, FIRST = "a token more for every sequence", "first token of a whole context"
COMPARED = (
    Compared("fits", style="right"),
    Compared("params"),
    Compared("active_params"),
    Compared("flops_per_token"),
    Compared("prefill_flops"),
    Compared("training_flops"),
    *(Compared(key, label, "GB", 9, "giga") for key, label in BYTES),
    Compared("tokens", "tokens a second, all sequences"),
    Compared("step_time", STEP, "ms", 6, "thousandth"),
    Compared("first_time", FIRST, "s", 9, "thousandth"),
    Compared("cost_million", "a million tokens", "$", 6, "dollars"),
)
"""What a planner reads; the integers behind it follow below."""
INTEGERS = (
    *(Compared(key, label) for key, label in BYTES),
    Compared("step_time", STEP),
    Compared("first_time", FIRST),
    Compared("cost_million", "a million tokens"),
)


def curve(book: Book, columns: list[Column], steps: Steps) -> None:
    """Write the sheet Curve: FLOPs of attention against context, with those of the matmuls; empty
    where the context or a model's input cannot be used."""
    models = [column.placed for column in columns]
    page = book.page("Curve", 12, *(24,) * (2 * len(models)))
    page.text(0, 0, "FLOPs of one token by the positions it sees", "title")
    page.text(2, 0, "Attention is scores and values; its projections are matmuls.", "note")
    page.text(1, 0, "The contexts may be changed.", "note")
    heads = [f"{p.model.name}{what}" for p in models for what in (SCORES, " matmuls")]
    page.heads(3, ["context", *heads], over="numbers")
    page.freeze(4, 1)
    first = 4
    for row, context in enumerate(CONTEXTS, start=first):
        ref = page.number(row, 0, context, "input")
        page.whole_from(row, 0, 1, MOST_TOKENS, "context")
        right = f'{checks.whole(ref, 1, MOST_TOKENS)}="{checks.OK}"'
        for at, placed in enumerate(models):
            writer = steps.writer(placed.model.name, placed.limits | {ref: MOST_TOKENS})
            usable = f"AND({columns[at].name('wrong')}=0,{right})"
            n: Any = symbol(ref, context)
            for column, value in enumerate(
                (
                    flops.attention_per_token(placed.ledger, n),
                    flops.matmul_per_token(placed.ledger),
                ),
                start=1 + 2 * at,
            ):
                text = f'=IF({usable},{writer.text(value)},"")'
                page.formula(row, column, text, lift(value).value)
    chart = book.file.add_chart({"type": "scatter", "subtype": "straight"})
    last = first + len(CONTEXTS) - 1
    for column in range(1, 1 + 2 * min(len(models), len(COLOURS))):
        chart.add_series(
            {
                "name": [page.name, 3, column],
                "categories": [page.name, first, 0, last, 0],
                "values": [page.name, first, column, last, column],
                "line": {
                    "color": COLOURS[(column - 1) // 2],
                    "width": 2,
                    "dash_type": "solid" if column % 2 else "dash",
                },
            }
        )
    chart.set_title({"name": "Attention against context", "name_font": {"size": 12}})
    chart.set_x_axis({"name": "context", "log_base": 2, "min": CONTEXTS[0], "max": CONTEXTS[-1]})
    chart.set_y_axis({"name": "FLOPs a token", "log_base": 10, "num_format": "0E+0"})
    chart.set_legend({"position": "bottom"})
    chart.set_size({"width": 760, "height": 420})
    page.sheet.insert_chart(last + 2, 0, chart)


def compare(book: Book, summary: Summary, columns: list[Column]) -> None:
    """Write the sheet Compare: figures side by side, and each against the first model's."""
    count = len(columns)
    page = book.page("Compare", 36, 13, *(22,) * count, 3, *(12,) * count)
    page.text(0, 0, "Models side by side", "title")
    page.text(1, 0, "On the right: times the first model's.", "note")
    names = [column.placed.model.name for column in columns]
    page.heads(2, ["", "unit"])
    page.heads(2, [*names, "", *names], 2, over="numbers")
    page.freeze(3, 2)
    for row, line in enumerate(COMPARED, start=3):
        _compared(page, row, line, summary, columns)
    page.verdicts(3, 2, 3, 1 + count)
    below = 4 + len(COMPARED)
    page.text(below, 0, "The integers behind them", "group")
    for row, line in enumerate(INTEGERS, start=below + 1):
        _compared(page, row, line, summary, columns)


def _compared(
    page: Page, row: int, line: Compared, summary: Summary, columns: list[Column]
) -> None:
    """Write a row of sheet Compare."""
    count = len(columns)
    own: Summary | DeploymentSheet = summary if line.key in summary.rows else columns[0].sheet
    at = own.rows[line.key]
    label, unit = own.labels[line.key]
    page.text(row, 0, line.label or label)
    page.text(row, 1, line.unit or unit, "note")
    first = f"$C{row + 1}"
    for number in range(count):
        value = own.page.values.get((at, own.start + number), "")
        ref = own.page.ref(at, own.start + number)
        scaled = ref
        if line.digits:
            scaled = f"{ref}/10^{line.digits}"
            value = "" if isinstance(value, str) else value / 10**line.digits
        page.formula(row, 2 + number, f'=IF({ref}="","",{scaled})', value, line.style)
        own_cell = f"{letters(2 + number)}{row + 1}"
        base = page.values[row, 2]
        known = not isinstance(value, str) and not isinstance(base, str) and value >= 0 < base
        text = f'IF(AND({first}>0,{own_cell}>=0),{own_cell}/{first},"")'
        text = f'=IF(AND(ISNUMBER({first}),ISNUMBER({own_cell})),{text},"")'
        shown = value / base if known else ""  # type: ignore[operator]
        page.formula(row, 3 + count + number, text, shown, "ratio")

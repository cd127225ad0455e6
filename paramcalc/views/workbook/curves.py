"""Models side by side, and the curve of attention against context."""

from __future__ import annotations

from typing import Any

from paramcalc.quantities import flops
from paramcalc.symbols import lift, symbol
from paramcalc.views.workbook import checks
from paramcalc.views.workbook.book import COLOURS, Book, letters
from paramcalc.views.workbook.column import Column
from paramcalc.views.workbook.deployment import DeploymentSheet
from paramcalc.views.workbook.inputs import MOST_TOKENS
from paramcalc.views.workbook.steps import Steps
from paramcalc.views.workbook.summary import Summary

CONTEXTS = tuple(2**power for power in range(9, 21))
"""Tokens at which the curve is drawn, at first."""
COMPARED = {
    "params": "",
    "active_params": "",
    "flops_per_token": "",
    "prefill_flops": "",
    "training_flops": "",
    "kv_bytes": "",
    "weights": "weights, in the chosen format",
    "needed": "needed on one GPU",
    "free": "free on one GPU",
    "tokens": "tokens a second, all sequences",
    "first_time": "first token of a whole context",
    "cost_million": "a million tokens",
}
"""Rows of sheet Compare, with a label where the row's own says too little there."""


def curve(book: Book, columns: list[Column], steps: Steps) -> None:
    """Write the sheet Curve: FLOPs of attention against context, with those of the matmuls; empty
    where the context or a model's input cannot be used."""
    models = [column.placed for column in columns]
    page = book.page("Curve", 12, *(24,) * (2 * len(models)))
    page.text(0, 0, "FLOPs of one token by the positions it sees", "title")
    page.text(1, 0, "The contexts may be changed.", "note")
    heads = [f"{p.model.name}{what}" for p in models for what in (" attention", " matmuls")]
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
    deployment = columns[0].sheet
    for row, (key, words) in enumerate(COMPARED.items(), start=3):
        own: Summary | DeploymentSheet = summary if key in summary.rows else deployment
        at = own.rows[key]
        label, unit = own.labels[key]
        page.text(row, 0, words or label)
        page.text(row, 1, unit, "note")
        first = f"$C{row + 1}"
        for number in range(count):
            value = own.page.values.get((at, own.start + number), "")
            ref = own.page.ref(at, own.start + number)
            page.formula(row, 2 + number, f'=IF({ref}="","",{ref})', value)
            own_cell = f"{letters(2 + number)}{row + 1}"
            base: Any = page.values[row, 2]
            known = isinstance(value, int) and value >= 0 and isinstance(base, int) and base > 0
            text = f'IF(AND({first}>0,{own_cell}>=0),{own_cell}/{first},"")'
            text = f'=IF(AND(ISNUMBER({first}),ISNUMBER({own_cell})),{text},"")'
            shown = value / base if known else ""
            page.formula(row, 3 + count + number, text, shown, "ratio")

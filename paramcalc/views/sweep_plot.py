"""Pictures of a sweep: a line for one axis, a heat map for two, a scatter with its Pareto front for
more. PNG, SVG and HTML by matplotlib, the terminal by plotext."""

from __future__ import annotations

import sys
from math import ceil, floor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paramcalc.errors import InputError
from paramcalc.sweep import select
from paramcalc.sweep.columns import known
from paramcalc.sweep.request import Plan
from paramcalc.views import figures_view, output
from paramcalc.views.tables import Size
from paramcalc.writing import beside

MOST_POINTS = 200_000
TICKS = 5
"""Numbers beside an axis in the terminal, or fewer."""
PREFIXED = ("bytes", "microdollars", "nanoseconds")
"""Units that such a number says itself, as GB, $ and ms."""
SUFFIXES = (".png", ".svg", ".html")
LINE, FRONT = "#4269d0", "#ff725c"
"""Blue and coral, told apart without colour vision and on light and dark grounds."""


class Points(NamedTuple):
    """What a picture shows: the axes that vary, the quantities, and each one's values."""

    axes: list[str]
    quantities: list[str]
    values: dict[str, Any]
    units: dict[str, str]
    title: str
    front: list[tuple[str, int]]


def draw(plan: Plan, target: str, *, force: bool) -> None:
    """Draw a sweep into a file, or on the terminal for ``-``. Raises ``InputError``."""
    if target == "-":
        _terminal(gather(plan))
        return
    path = Path(target)
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(
            f"plot = {target}: unknown kind; end it in {', '.join(SUFFIXES)}, or give -"
        )
    if path.exists() and not force:
        raise InputError(f"plot = {target}: exists; name another or give --force")
    figure = _figure(gather(plan))
    with beside(path, "plot") as held:
        if path.suffix.lower() == ".html":
            held.write_text(_page(figure), encoding="utf-8")
        else:
            figure.savefig(held, format=path.suffix[1:].lower(), dpi=144)
    output.say(f"drew {path}")


def gather(plan: Plan) -> Points:
    """Return the rows of a sweep as columns of numbers."""
    units = known([a.field for a in plan.axes])
    numeric = [n for n in plan.shown if units[n] != "name"]
    fields = [a.field for a in plan.axes]
    quantities = [n for n in numeric if n not in fields]
    if not quantities:
        raise InputError("plot: needs a quantity to show; name one with --columns")
    if plan.rows > MOST_POINTS:
        raise InputError(
            f"plot: {plan.rows:,} rows, at most {MOST_POINTS:,} are drawn; thin an axis"
        )
    blocks = [
        block.take(np.arange(len(block.rows))) for block in select.kept(plan) if len(block.rows)
    ]
    if not blocks:
        raise InputError("plot: no row meets the conditions; loosen them")
    names = [n for n in plan.names if units[n] != "name"]
    values = {
        name: np.concatenate([b.columns[name] for b in blocks if name in b.columns])
        for name in names
        if all(name in b.columns for b in blocks)
    }
    free = [a.field for a in plan.axes if a.values is not None]
    axes = [n for n in free if n in values and len(np.unique(values[n])) > 1]
    base = ", ".join(m.name for m in plan.models)
    title = f"{base}: {len(values[quantities[0]]):,} shapes"
    return Points(axes, quantities, values, units, title, plan.front)


def _label(points: Points, name: str) -> str:
    return f"{name} ({points.units[name]})" if points.units[name] != "elements" else name


def _figure(points: Points) -> Any:
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import EngFormatter
    except ImportError:
        raise InputError("a picture needs matplotlib; pip install 'paramcalc[plot]'") from None
    figure: Any = Figure(figsize=(8, 5), layout="constrained")
    chart = figure.subplots()
    if len(points.axes) == 1:
        _line(chart, points)
    elif len(points.axes) == 2:
        _heat(figure, chart, points)
    else:
        _scatter(chart, points)
    chart.set_title(points.title)
    for axis in (chart.xaxis, chart.yaxis):
        if max(map(abs, axis.get_view_interval())) >= 100_000:
            axis.set_major_formatter(EngFormatter())
    for side in ("top", "right"):
        chart.spines[side].set_visible(False)
    return figure


def _line(chart: Any, points: Points) -> None:
    x, y = points.axes[0], points.quantities[0]
    order = np.argsort(points.values[x], kind="stable")
    chart.plot(
        points.values[x][order].astype(float),
        points.values[y][order].astype(float),
        color=LINE,
        marker="o" if len(order) <= 40 else None,
    )
    chart.set_xlabel(_label(points, x))
    chart.set_ylabel(_label(points, y))
    chart.grid(alpha=0.3)


def _heat(figure: Any, chart: Any, points: Points) -> None:
    y, x = points.axes
    z = points.quantities[0]
    columns, column = np.unique(points.values[x], return_inverse=True)
    rows, row = np.unique(points.values[y], return_inverse=True)
    grid = np.full((len(rows), len(columns)), np.nan)
    grid[row, column] = points.values[z].astype(float)
    mesh = chart.pcolormesh(columns, rows, grid, shading="nearest", cmap="viridis")
    figure.colorbar(mesh, ax=chart, label=_label(points, z))
    chart.set_xlabel(_label(points, x))
    chart.set_ylabel(_label(points, y))


def _scatter(chart: Any, points: Points) -> None:
    x, y = _pair(points)
    a, b = points.values[x], points.values[y]
    chart.scatter(a.astype(float), b.astype(float), s=6, alpha=0.4, color=LINE, label="shapes")
    signs = dict(points.front)
    keys = np.stack([a * signs.get(x, 1), b * signs.get(y, 1)], axis=1)
    front = select.front(keys)
    front = front[np.argsort(a[front], kind="stable")]
    chart.plot(
        a[front].astype(float), b[front].astype(float), color=FRONT, marker="o", ms=4,
        label="Pareto front",
    )  # fmt: skip
    chart.set_xlabel(_label(points, x))
    chart.set_ylabel(_label(points, y))
    chart.legend()


def _pair(points: Points) -> tuple[str, str]:
    if len(points.front) == 2:
        return points.front[0][0], points.front[1][0]
    if len(points.quantities) < 2:
        raise InputError("plot: a scatter needs two quantities; name them with --columns")
    return points.quantities[0], points.quantities[1]


def _page(figure: Any) -> str:
    import io
    from html import escape

    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    svg = buffer.getvalue()
    title = escape(figure.axes[0].get_title())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        f"<body>{svg[svg.index('<svg') :]}</body></html>\n"
    )


def _terminal(points: Points) -> None:
    try:
        import plotext
    except ImportError:
        raise InputError("a plot here needs plotext; pip install 'paramcalc[plot]'") from None
    plotext.clear_figure()
    plotext.theme("clear")
    plotext.plot_size(78, 22)
    if len(points.axes) == 1:
        x, y = points.axes[0], points.quantities[0]
        order = np.argsort(points.values[x], kind="stable")
        plotext.plot(points.values[x][order].tolist(), points.values[y][order].tolist())
    else:
        x, y = _pair(points)
        plotext.scatter(points.values[x].tolist(), points.values[y].tolist())
    for name, ticks, label in (
        (x, plotext.xticks, plotext.xlabel),
        (y, plotext.yticks, plotext.ylabel),
    ):
        at = _ticks(points.values[name].tolist())
        unit = points.units[name]
        ticks(at, [_tick(value, unit) for value in at])
        label(name if unit in PREFIXED else _label(points, name))
    plotext.title(points.title)
    lines = plotext.uncolorize(plotext.build()).splitlines()
    sys.stdout.write("\n".join(line.rstrip() for line in lines) + "\n")


def _ticks(values: list[Any]) -> list[int]:
    """Whole numbers from the least value to the greatest, a few of them."""
    low, high = floor(min(values)), ceil(max(values))
    return sorted({low + (high - low) * step // (TICKS - 1) for step in range(TICKS)})


def _tick(value: int, unit: str) -> str:
    """A number beside an axis: in its unit where that has prefixes, grouped while it is short."""
    if unit == "bytes":
        return str(Size(value, brief=True))
    if unit == "microdollars":
        return figures_view.dollars(value)
    if unit == "nanoseconds":
        return figures_view.duration(value // 1000)
    return f"{value:,}" if abs(value) < 100_000 else figures_view.scaled(value, "").strip()

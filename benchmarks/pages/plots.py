"""Charts as SVG, to stand inside a page: drawn by matplotlib, without a display.

Their colours are variables of the page's style, so that they are right on a dark page, too.
"""

from __future__ import annotations

import io
import math
import re
from html import escape

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import Formatter, LogLocator, MaxNLocator, NullLocator

from benchmarks.pages.charts import Chart
from benchmarks.pages.wording import (
    SECONDS,
    count_decimals,
    find_column,
    format_column,
    name_in_words,
)

WIDTH_INCHES, HEIGHT_INCHES = 5.0, 2.75
FONT_POINTS = 8.5
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#a87900", "#3a9bdc", "#6b6b6b", "#7a4fbf")
STROKES = ("-", "--", ":", "-.")
"""After eight lines the colours come again, with another stroke."""
TEXT, GRID = "#1c1d1f", "#d8d9dc"
VARIABLES = {TEXT: "text", GRID: "grid"} | {c: f"line{n}" for n, c in enumerate(COLOURS)}
"""The variable of the page's style for each colour."""
TICK_DECIMALS = 6
HEADROOM = 1.06
"""So that a line at the top is not cut."""
NINES = {1 / (1 - p): f"p{100 * p:g}" for p in (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)}
UNUSED = re.compile(r"<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
"""Of matplotlib's own style the page has a copy."""


def svg(chart: Chart, name: str) -> str:
    """A chart as an ``<svg>`` element. ``name`` is unique in the page: it keeps ids apart."""
    with mpl.rc_context(
        {
            "svg.fonttype": "none",
            "svg.hashsalt": name,
            "font.size": FONT_POINTS,
            "text.color": TEXT,
            "axes.labelcolor": TEXT,
            "axes.edgecolor": TEXT,
            "xtick.color": TEXT,
            "ytick.color": TEXT,
            "grid.color": GRID,
        }
    ):
        figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        figure.patch.set_visible(False)
        axes = figure.add_subplot()
        draw(axes, chart)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return fit_into_page(text.getvalue(), name_in_words(chart.title))


def fit_into_page(text: str, title: str) -> str:
    """The element alone, as wide as its place, with a name, and in the colours of the page."""
    element = UNUSED.sub("", text[text.index("<svg") :])
    # Nothing refers to the ids of groups, and every chart has the same.
    element = re.sub(r'<g id="[^"]*"', "<g", element)
    element = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", element, count=1)
    element = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", element, count=1)
    for colour, variable in VARIABLES.items():
        element = element.replace(colour, f"var(--{variable}, {colour})")
    label = escape(title)
    return element.replace("<svg", f'<svg class="chart" role="img" aria-label="{label}"', 1)


def draw(axes: Axes, chart: Chart) -> None:
    """The lines, or bars, and what explains them."""
    axes.set_facecolor("none")
    if chart.bars:
        draw_bars(axes, chart)
    else:
        draw_lines(axes, chart)
    axes.set_xlabel(find_column(chart.x).text)
    axes.set_ylabel(find_column(chart.y).text)
    axes.grid(visible=True, axis="y" if chart.bars else "both", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    scale(axes, chart)


def draw_bars(axes: Axes, chart: Chart) -> None:
    """A bar a line, with its value on it."""
    labels = [line.label for line in chart.lines]
    heights = [line.points[0][1] or 0.0 for line in chart.lines]
    bars = axes.bar(labels, heights, color=COLOURS[0], width=0.5)
    axes.bar_label(bars, format_column(chart.y, list(heights)), padding=2)


def draw_lines(axes: Axes, chart: Chart) -> None:
    """The lines, each in its colour."""
    for number, line in enumerate(chart.lines):
        xs = [x for x, _ in line.points]
        ys = [math.nan if y is None else y for _, y in line.points]
        colour = COLOURS[number % len(COLOURS)]
        stroke = STROKES[number // len(COLOURS) % len(STROKES)]
        marker = "o" if len(xs) < 12 else ""
        axes.plot(xs, ys, stroke, color=colour, marker=marker, markersize=4, linewidth=1.7)


def scale(axes: Axes, chart: Chart) -> None:
    """Logarithmic where asked for, else from zero; ticks say what they are, such as 0.1 s."""
    has_positive = any(y is not None and y > 0 for line in chart.lines for _, y in line.points)
    if chart.log_y and has_positive:
        axes.set_yscale("log")
        set_log_ticks(axes.yaxis)
    else:
        axes.set_ylim(0, (axes.get_ylim()[1] or 1.0) * HEADROOM)
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(TickNames(chart.y, axes.get_yscale() == "linear"))
    if chart.percentiles:
        set_percentile_ticks(axes, chart)
        return
    if chart.log_x:
        axes.set_xscale("log")
        set_log_ticks(axes.xaxis)
    if not chart.bars:
        axes.xaxis.set_major_formatter(TickNames(chart.x, axes.get_xscale() == "linear"))


def set_log_ticks(axis: Axis) -> None:
    """At 1, 2 and 5 of every power of ten: some of them are in any range."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_minor_locator(NullLocator())


def set_percentile_ticks(axes: Axes, chart: Chart) -> None:
    """At p50, p90, p99 and so on, as far as there are points."""
    axes.set_xscale("log")
    most = max((x for line in chart.lines for x, _ in line.points), default=2.0)
    ticks = {x: label for x, label in NINES.items() if x <= most * 1.001}
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.xaxis.set_minor_locator(NullLocator())


class TickNames(Formatter):
    """What the ticks of an axis are called: ``0.1 s``, ``10,000``. On an even scale all of them
    have the same decimals."""

    def __init__(self, axis: str, even: bool = True) -> None:
        in_seconds = axis.startswith(SECONDS) or find_column(axis).unit == SECONDS
        self._unit = " s" if in_seconds else ""
        self._even = even

    def __call__(self, value: float, _: int | None = None) -> str:
        """One tick by itself."""
        return f"{value:,.{count_decimals([value], TICK_DECIMALS)}f}{self._unit}"

    def format_ticks(self, values: list[float]) -> list[str]:
        """All ticks of the axis."""
        if not self._even:
            return [self(value) for value in values]
        decimals = count_decimals(list(map(float, values)), TICK_DECIMALS)
        return [f"{value:,.{decimals}f}{self._unit}" for value in values]

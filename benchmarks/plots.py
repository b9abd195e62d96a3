"""Charts as SVG, to stand inside a page: drawn by matplotlib, without a display."""

from __future__ import annotations

import io
import math

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.result import Chart

WIDTH_INCHES, HEIGHT_INCHES = 6.4, 3.2
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666", "#000000")
NINES = {1 / (1 - p): f"p{100 * p:g}" for p in (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999)}


def svg(chart: Chart, name: str) -> str:
    """A chart as an ``<svg>`` element. ``name`` is unique in the page: it keeps ids apart."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
        figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES), layout="constrained")
        axes = figure.add_subplot()
        draw(axes, chart)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def draw(axes: Axes, chart: Chart) -> None:
    """The lines, or bars, and what explains them."""
    if chart.bars:
        draw_bars(axes, chart)
    else:
        draw_lines(axes, chart)
    axes.set_title(chart.title, loc="left", fontsize=10, fontweight="bold")
    axes.set_xlabel(chart.x, fontsize=8)
    axes.set_ylabel(chart.y, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(visible=True, alpha=0.3, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    scale(axes, chart)


def draw_bars(axes: Axes, chart: Chart) -> None:
    """A bar a line, with its value on it."""
    labels = [line.label for line in chart.lines]
    heights = [line.points[0][1] or 0.0 for line in chart.lines]
    drawn = axes.bar(labels, heights, color=COLOURS[0], width=0.6)
    axes.bar_label(drawn, fmt="%.4g", fontsize=8)


def draw_lines(axes: Axes, chart: Chart) -> None:
    """The lines, each in its colour."""
    for number, line in enumerate(chart.lines):
        xs = [x for x, _ in line.points]
        ys = [math.nan if y is None else y for _, y in line.points]
        colour = COLOURS[number % len(COLOURS)]
        marker = "o" if len(xs) < 12 else ""
        axes.plot(xs, ys, label=line.label, color=colour, marker=marker, linewidth=1.5)
    if len(chart.lines) > 1:
        axes.legend(fontsize=8, frameon=False)


def scale(axes: Axes, chart: Chart) -> None:
    """Logarithmic where asked for, else from zero."""
    has_positive = any(y is not None and y > 0 for line in chart.lines for _, y in line.points)
    if chart.log_y and has_positive:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    if chart.log_x or chart.percentiles:
        axes.set_xscale("log")
    if chart.percentiles:
        most = max((x for line in chart.lines for x, _ in line.points), default=2.0)
        shown = {x: label for x, label in NINES.items() if x <= most * 1.001}
        axes.set_xticks(list(shown), list(shown.values()))
        axes.set_xticks([], minor=True)

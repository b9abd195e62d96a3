"""Templates of pages that stand alone: no script, no file beside them, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from benchmarks.pages.charts import Chart
from benchmarks.pages.plots import COLOURS, svg
from benchmarks.pages.wording import name_in_words

WIDE_COLUMNS = 4
"""A table with fewer columns does not take the whole width: its rows would be hard to follow."""
NamedChart = tuple[str, Chart]
"""A chart with a name that is unique in the page."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column as text; ``unit`` stands in words under the label. ``words`` are aligned to the
    left, numbers to the right. ``kinds`` are classes of the style, one for each cell."""

    label: str
    cells: Sequence[str]
    unit: str = ""
    words: bool = False
    kinds: Sequence[str] = ()

    def classes(self, number: int) -> str:
        """Those of one of its cells."""
        return " ".join([*(["words"] if self.words else []), *self.kinds[number : number + 1]])


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of the same length, in a box that scrolls by itself; the first one names the row."""

    label: str
    columns: Sequence[TableColumn]

    @property
    def narrow(self) -> bool:
        """Whether it does not take the whole width."""
        return len(self.columns) < WIDE_COLUMNS


def draw(chart: Chart, name: str) -> Markup:
    """The chart as an element of the page."""
    return Markup(svg(chart, name))


def make_environment() -> Environment:
    """The templates in this folder. Every value is escaped, and one that is not there raises."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"in_words": name_in_words, "svg": draw}
    environment.globals["colours"] = len(COLOURS)
    return environment


TEMPLATES = make_environment()


def keep_telling_charts(charts: Sequence[Chart], names: Iterator[str]) -> list[NamedChart]:
    """Those of more than a single point, of which the table says as much; each with a name."""
    return [(next(names), chart) for chart in charts if count_points(chart) > 1]


def count_points(chart: Chart) -> int:
    """Bars, or the points of the longest line."""
    if chart.bars:
        return len(chart.lines)
    return max((len(line.points) for line in chart.lines), default=0)


def render_page(plot: Chart) -> str:
    """A plot as a page of its own."""
    return TEMPLATES.get_template("chart.html").render(title=plot.title, charts=[("model", plot)])

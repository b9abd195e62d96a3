"""Parts of an HTML page that stands alone: no script, no file beside it, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchmarks.pages.charts import Chart
from benchmarks.pages.plots import COLOURS, svg
from benchmarks.pages.wording import name_in_words

WIDE_COLUMNS = 4
"""A table with fewer columns does not take the whole width: its rows would be hard to follow."""
STYLE = Path(__file__).with_name("report.css").read_text()


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
        """The attribute for one of its cells."""
        kinds = [*(["words"] if self.words else []), *self.kinds[number : number + 1]]
        return f' class="{" ".join(kinds)}"' if kinds else ""

    def render_head(self) -> str:
        """The cell above it."""
        words = ' class="words"' if self.words else ""
        unit = f' <small class="unit">{escape(self.unit)}</small>' if self.unit else ""
        return f'<th scope="col"{words}>{escape(self.label)}{unit}</th>'


def render_document(title: str, body: str) -> str:
    """A whole page, in light or dark colours as the reader's system has them."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def render_table(label: str, columns: Sequence[TableColumn]) -> str:
    """Columns of the same length, in a box that scrolls by itself; the first one names the row."""
    head = "".join(each.render_head() for each in columns)
    body = "".join(render_row(columns, number) for number in range(len(columns[0].cells)))
    narrow = ' class="narrow"' if len(columns) < WIDE_COLUMNS else ""
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(label)}">'
        f"<table{narrow}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def render_row(columns: Sequence[TableColumn], number: int) -> str:
    """A row of a table."""
    first, *others = columns
    name = f'<th scope="row"{first.classes(number)}>{escape(first.cells[number])}</th>'
    cells = "".join(
        f"<td{each.classes(number)}>{escape(each.cells[number])}</td>" for each in others
    )
    return f"<tr>{name}{cells}</tr>"


def render_list(name: str, lines: Sequence[str], kind: str) -> str:
    """Some sentences under a name; nothing for none."""
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="box {kind}"><strong>{escape(name)}</strong><ul>{items}</ul></div>'


def render_warning(text: str) -> str:
    """What a reader must know before the figures."""
    return f'<p class="box warning" role="note">{escape(text)}</p>'


def fold(summary: str, content: str) -> str:
    """Something that a reader can open."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def render_charts(charts: Sequence[tuple[str, Chart]]) -> str:
    """Charts, two beside each other where there is room. Names are unique in the page."""
    figures = "".join(render_chart(name, chart) for name, chart in charts)
    return f'<div class="charts">{figures}</div>' if figures else ""


def render_chart(name: str, chart: Chart) -> str:
    """A chart with its title, and what its colours mean."""
    return (
        f"<figure><figcaption>{escape(name_in_words(chart.title))}{render_legend(chart)}</figcaption>"
        f"{svg(chart, name)}</figure>"
    )


def render_legend(chart: Chart) -> str:
    """The name of each line beside its colour; nothing for a single line, and for bars."""
    if chart.bars or len(chart.lines) < 2:
        return ""
    names = [name_in_words(line.label) for line in chart.lines]
    items = "".join(
        f'<li><i class="line{number % len(COLOURS)}"></i>{escape(name)}</li>'
        for number, name in enumerate(names)
    )
    return f'<ul class="legend">{items}</ul>'


def render_page(plot: Chart) -> str:
    """A plot as a page of its own."""
    return render_document(plot.title, f"<main>{render_charts([('model', plot)])}</main>")

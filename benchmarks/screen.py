"""What is seen of a benchmark while it runs: a live table, or lines where there is no terminal."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from benchmarks.comparison import FigurePair
from benchmarks.experiment import RunProgress
from benchmarks.result import Cell, ScenarioResult
from watcher.process.terminal.mode import MODE

RATE_SECONDS = 2.0


class Screen:
    """Shows the run under way: in place on a terminal, else as a line a phase."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, refresh_per_second=5, transient=True)
        self._seen: deque[tuple[float, int, int]] = deque()
        self._said: tuple[str, str] | None = None

    def __enter__(self) -> Screen:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def __call__(self, progress: RunProgress) -> None:
        """A look at the run."""
        if self._console.is_terminal:
            self._live.update(self._table(progress))
        elif not MODE.quiet and (progress.name, progress.phase) != self._said:
            self._said = (progress.name, progress.phase)
            self._console.print(f"{progress.name}: {progress.phase}", markup=False)

    def _table(self, progress: RunProgress) -> Table:
        written, delivered = self._rates(progress)
        table = Table(title=Text(progress.name), title_justify="left")
        for column in ("phase", "seconds", "written", "rows/s", "delivered", "rows/s", "behind"):
            table.add_column(column, justify="left" if column == "phase" else "right")
        table.add_row(
            progress.phase,
            f"{progress.seconds:.0f}",
            f"{progress.written:,}",
            f"{written:,.0f}",
            f"{progress.delivered:,}",
            f"{delivered:,.0f}",
            f"{max(progress.written - progress.delivered, 0):,}",
        )
        return table

    def _rates(self, progress: RunProgress) -> tuple[float, float]:
        """Rows a second, written and delivered, over the last moments."""
        now = time.monotonic()
        if self._seen and progress.written < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, progress.written, progress.delivered))
        while now - self._seen[0][0] > RATE_SECONDS:
            self._seen.popleft()
        first, before_written, before_delivered = self._seen[0]
        took = max(now - first, 0.1)
        return (
            (progress.written - before_written) / took,
            (progress.delivered - before_delivered) / took,
        )


def print_result(console: Console, result: ScenarioResult) -> None:
    """A scenario's table and verdict."""
    if result.figures:
        for table in figures_tables(result, console.width):
            console.print(table)
    for line in (*result.notes, *(f"skipped: {each}" for each in result.skipped)):
        console.print(line, markup=False)
    for problem in result.problems:
        console.print(f"FAILED: {problem}", markup=False, style="bold red")
    print_busy(console, result.scenario, result)
    console.print(f"{result.seconds:.0f} s, {result.outcome}\n")


def print_busy(console: Console, name: str, result: ScenarioResult) -> None:
    """A warning when others kept the machine busy during a result of that name."""
    if result.busy is not None:
        warning = f"WARNING: {name}: the machine was busy: {result.busy}"
        advice = "run it again when nothing else runs"
        console.print(f"{warning}; {advice}", markup=False, style="bold yellow")


def figures_tables(result: ScenarioResult, width: int) -> Iterator[Table]:
    """A column a row where there are more figures than rows, as there mostly are; then as many
    tables, one below another, as the columns need."""
    names = list(dict.fromkeys(name for row in result.figures for name in row))
    title = Text(f"{result.scenario}: {result.summary}")
    if len(result.figures) > len(names):
        columns = [[name, *(shown(row.get(name)) for row in result.figures)] for name in names]
        left = [name in result.keys for name in names]
        yield table_of(title, columns, left)
        return
    figures = [name for name in names if name not in result.keys]
    first = ["\n".join(result.keys), *figures]
    beside = [
        ["\n".join(shown(row.get(key)) for key in result.keys)]
        + [shown(row.get(name)) for name in figures]
        for row in result.figures
    ]
    for block in split_columns(beside, width - 1 - measure_width(first)):
        yield table_of(title, [first, *block], [True, *(False for _ in block)])


def table_of(title: Text, columns: list[list[str]], left: list[bool]) -> Table:
    """Columns, each with its head, as a table; what none of them knows is left out."""
    table = Table(title=title, title_justify="left")
    for (head, *_), to_left in zip(columns, left, strict=True):
        table.add_column(Text(head), justify="left" if to_left else "right")
    for cells in zip(*(column[1:] for column in columns), strict=True):
        if any(cell != shown(None) for cell in cells[1:]):
            table.add_row(*map(Text, cells))
    return table


def split_columns(columns: list[list[str]], width: int) -> Iterator[list[list[str]]]:
    """The columns in blocks that are no wider than that, unless a single one is."""
    block: list[list[str]] = []
    used = 0
    for column in columns:
        if block and used + measure_width(column) > width:
            yield block
            block, used = [], 0
        block.append(column)
        used += measure_width(column)
    yield block


def measure_width(column: list[str]) -> int:
    """Characters that a column takes, with its border and the blanks around."""
    return max(len(line) for cell in column for line in cell.split("\n")) + 3


def print_comparison(console: Console, title: str, rows: list[FigurePair]) -> None:
    """Two results side by side."""
    table = Table(title=Text(title), title_justify="left")
    for column in ("row", "figure", "first", "second", "second/first"):
        table.add_column(column, justify="left" if column in ("row", "figure") else "right")
    before = None
    for row in rows:
        name = row.row if row.row != before else ""
        before = row.row
        ratio = f"{row.ratio:g}" if row.ratio is not None else "-"
        cells = (name, row.column, shown(row.first), shown(row.second), ratio)
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)


def shown(value: Cell) -> str:
    """A cell for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and abs(value) >= 1_000):
        return f"{value:,.0f}"
    return f"{value:g}" if isinstance(value, float) else str(value)

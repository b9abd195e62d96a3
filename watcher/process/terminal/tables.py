"""Tables for people: whole where there is no terminal, with fewer columns where one is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

BORDER = 3
"""The characters that a column takes beside its text."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column; of those that do not fit, the ones with the highest ``drop`` go first.

    ``drop`` 0 stays: where even these are too wide, their text is folded, never cut.
    """

    title: str
    drop: int = 0
    right: bool = False


def print_table(
    console: Console, columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], more: str
) -> None:
    """Prints rows, and below them which columns are not shown; ``more`` says where they are."""
    shown = choose_columns(columns, rows, console.width)
    table = Table()
    for number in shown:
        column = columns[number]
        table.add_column(
            Text(column.title), justify="right" if column.right else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(row[number]) for number in shown))
    console.print(table)
    hidden = [column.title for number, column in enumerate(columns) if number not in shown]
    if hidden:
        console.print(f"too narrow for: {', '.join(hidden)}; {more}")


def choose_columns(
    columns: Sequence[TableColumn], rows: Sequence[Sequence[str]], width: int
) -> list[int]:
    """The numbers of the columns that fit, in order."""
    widths = [
        BORDER + max(map(cell_len, (column.title, *(row[number] for row in rows))))
        for number, column in enumerate(columns)
    ]
    shown = list(range(len(columns)))
    while 1 + sum(widths[number] for number in shown) > width:
        droppable = [number for number in shown if columns[number].drop]
        if not droppable:
            break
        shown.remove(max(droppable, key=lambda number: columns[number].drop))
    return shown

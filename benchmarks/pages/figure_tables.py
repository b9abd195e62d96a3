"""The figures of a scenario: the six columns that matter most, and the others to open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.pages.elements import Table, TableColumn
from benchmarks.pages.wording import find_column, format_column, is_number, rank_column
from benchmarks.result import Cell, ScenarioResult
from benchmarks.run_settings import PEERS

SHOWN_COLUMNS = 6
MEASURE = "figure"
"""The column of tables in which every row is another figure, with a unit of its own."""
Row = dict[str, Cell]


@dataclass(frozen=True, slots=True)
class FigureTables:
    """The columns that matter, and ``hidden`` others, which a reader can open."""

    shown: Table
    hidden: int
    others: Table | None


def list_figures(result: ScenarioResult) -> list[FigureTables]:
    """Tables for each kind of row; none where every row is another figure."""
    if MEASURE in result.keys:
        return []
    return [split_columns(result, rows) for rows in split_kinds(result.figures)]


def split_kinds(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that have the same columns, or some of them, in a table; others in another."""
    kinds: list[list[Row]] = []
    for row in rows:
        kind = next((each for each in kinds if is_same_kind(row, each[0])), None)
        if kind is None:
            kinds.append([row])
        else:
            kind.append(row)
    return kinds


def is_same_kind(row: Row, other: Row) -> bool:
    """True when one of them has no column that the other lacks."""
    return row.keys() <= other.keys() or other.keys() <= row.keys()


def split_columns(result: ScenarioResult, rows: list[Row]) -> FigureTables:
    """The columns that matter, and the others."""
    there = dict.fromkeys(name for row in rows for name in row)
    names = [name for name in there if any(row.get(name) is not None for row in rows)]
    keys = find_telling_keys(result, names, rows)
    shown = choose_columns(result, names, keys)
    others = [name for name in names if name not in shown]
    return FigureTables(
        shown=Table(f"{result.scenario}: figures", [make_column(name, rows) for name in shown]),
        hidden=len(others),
        others=Table(f"{result.scenario}: more figures", list_others(keys, others, rows))
        if others
        else None,
    )


def find_telling_keys(result: ScenarioResult, names: list[str], rows: list[Row]) -> list[str]:
    """The keys that tell these rows apart; the first one if there is nothing to tell."""
    keys = [name for name in names if name in result.keys]
    telling = [key for key in keys if len({row.get(key) for row in rows}) > 1]
    return telling or keys[:1]


def choose_columns(result: ScenarioResult, names: list[str], keys: list[str]) -> list[str]:
    """Six: the keys, what the scenario's charts show, then what matters elsewhere."""
    drawn = {chart.y for chart in result.charts}
    drawn |= {line.label for chart in result.charts for line in chart.lines}
    others = [name for name in names if name not in keys]
    others.sort(key=lambda name: (name not in drawn, rank_column(name)))
    chosen = {*keys, *others[: max(SHOWN_COLUMNS - len(keys), 0)]}
    return [*keys, *(name for name in names if name in chosen and name not in keys)]


def make_column(name: str, rows: Sequence[Row]) -> TableColumn:
    """A column with its unit in words, all numbers with the same decimals."""
    meaning, values = find_column(name), [row.get(name) for row in rows]
    words = not any(is_number(value) for value in values)
    return TableColumn(meaning.label, format_column(name, values), meaning.unit, words)


def list_others(keys: list[str], others: list[str], rows: list[Row]) -> list[TableColumn]:
    """A row a figure, where the rows fit as columns beside each other; else as they are."""
    columns = [make_column(name, rows) for name in (*keys, *others)]
    if len(rows) >= SHOWN_COLUMNS:
        return columns
    named, figures = columns[: len(keys)], columns[len(keys) :]
    heads = [", ".join(cells) for cells in zip(*(each.cells for each in named), strict=True)]
    first = ", ".join(find_column(key).text for key in keys)
    texts = [find_column(name).text for name in others]
    beside = [
        TableColumn(head, [figure.cells[number] for figure in figures])
        for number, head in enumerate(heads)
    ]
    return [TableColumn(first, texts, words=True), *beside]


def list_cases(result: ScenarioResult) -> list[Table]:
    """Where every row is another figure with its unit: a table for each case."""
    if MEASURE not in result.keys:
        return []
    (key,) = (name for name in result.keys if name != MEASURE)
    cases = dict.fromkeys(str(row[key]) for row in result.figures)
    return [make_case(c, [row for row in result.figures if str(row[key]) == c]) for c in cases]


def make_case(case: str, rows: list[Row]) -> Table:
    """Figures of one case: what each is, then its values; those of a row have equal decimals."""
    measures = [str(row[MEASURE]) for row in rows]
    texts = [find_column(name).text for name in measures]
    peer = next((name for name in PEERS if name in rows[0]), "java")
    values = [
        format_column(name, [row.get("ours"), row.get(peer)])
        for name, row in zip(measures, rows, strict=True)
    ]
    columns = [
        TableColumn("figure", texts, words=True),
        TableColumn("ours", [ours for ours, _ in values]),
        TableColumn(find_column(peer).label, [theirs for _, theirs in values]),
        make_column("ratio", rows),
    ]
    return Table(case, columns)

"""Two results of one scenario side by side, with ratios."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.result import Cell, ScenarioResult

Key = tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class FigurePair:
    """A figure of both; ``ratio`` is the second over the first, None where there is none."""

    row: str
    column: str
    first: Cell
    second: Cell
    ratio: float | None


def compare_results(first: ScenarioResult, second: ScenarioResult) -> list[FigurePair]:
    """Every number that both have, by row and column; rows that only one has are left out."""
    others = {key_of(second, row): row for row in second.figures}
    pairs = []
    for row in first.figures:
        other = others.get(key_of(first, row))
        if other is None:
            continue
        for column, value in row.items():
            if column in first.keys or column not in other or is_text(value):
                continue
            pairs.append(
                FigurePair(
                    row=", ".join(str(part) for part in key_of(first, row)),
                    column=column,
                    first=value,
                    second=other[column],
                    ratio=ratio(value, other[column]),
                )
            )
    return pairs


def find_different_settings(
    first: ScenarioResult, second: ScenarioResult
) -> dict[str, tuple[object, object]]:
    """The settings in which they differ."""
    names = sorted(first.settings.keys() | second.settings.keys())
    pairs = {name: (first.settings.get(name), second.settings.get(name)) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def key_of(result: ScenarioResult, row: dict[str, Cell]) -> Key:
    """What tells a row from the others."""
    return tuple(row.get(name) for name in result.keys)


def is_text(value: Cell) -> bool:
    """True for what has no ratio."""
    return not isinstance(value, int | float)


def ratio(first: Cell, second: Cell) -> float | None:
    """Second over first."""
    if not isinstance(first, int | float) or not isinstance(second, int | float) or not first:
        return None
    return round(second / first, 3)

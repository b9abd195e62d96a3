"""Partitions of a table or index: ranges of keys, and a query's rows within one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from emulator.engine.keys import key_parts, range_clause
from emulator.engine.reads import ReadPlan, Row
from emulator.engine.refusals import unknown_table
from emulator.sql.statements import TableSource
from emulator.values.requests import KeyRange, Stored
from spanner_schema.model.schema import Schema

WHOLE = KeyRange((), (), start_closed=True, end_closed=True)


@dataclass(frozen=True, slots=True)
class QueryPartition:
    """The rows of a table whose key, or index key, lies in a range."""

    table: str
    index: str | None
    keys: KeyRange

    def condition(self, schema: Schema) -> tuple[str, dict[str, Stored]]:
        """SQLite text over the table's columns, and the values of its named parameters."""
        table = schema.table(self.table)
        if table is None:
            raise unknown_table(self.table)
        index = schema.index(self.index) if self.index else None
        clause = range_clause(key_parts(table, index, schema.dialect), self.keys)
        pieces = clause.sql.split("?")
        text = pieces[0] + "".join(f":range{n}_{piece}" for n, piece in enumerate(pieces[1:]))
        return text, {f"range{n}_": value for n, value in enumerate(clause.values)}


def key_ranges(
    plan: ReadPlan,
    fetch: Callable[[str, Row], list[Row]],
    source: TableSource,
    partitions_max: int,
) -> list[KeyRange]:
    """Cuts the rows of a plan into ranges of about the same number of rows.

    A plan of several statements, or of a table without a key, is one range.
    """
    if not plan.single or not plan.order:
        return [WHOLE]
    sql, values = plan.statement(source, plan.conditions)
    ((count,),) = fetch(f"SELECT count(*) FROM ({sql})", values)
    rows = int(count or 0)
    parts = max(1, min(partitions_max, rows))
    cuts: list[Row] = [()]
    for number in range(1, parts):
        cuts += fetch(f"{sql} LIMIT 1 OFFSET {number * rows // parts}", values)
    cuts.append(())
    last = len(cuts) - 2
    return [
        KeyRange(start, end, start_closed=True, end_closed=number == last)
        for number, (start, end) in enumerate(pairwise(cuts))
    ]

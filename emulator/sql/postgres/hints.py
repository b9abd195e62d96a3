"""The hints of a statement, by what they stand beside."""

from __future__ import annotations

import re

from sqlglot import exp

from emulator import errors
from emulator.sql.parsed import HINTS, Parsed
from emulator.sql.postgres.parser import find_hints

NAME = rb'(?:[\w$]++|"(?:""|[^"])++")'
TABLE_BEFORE = re.compile(rb"\s*+" + NAME + rb"(?:\s*+\.\s*+" + NAME + rb")*+")
JOIN_BEFORE = re.compile(rb"\s*+nioj\b", re.IGNORECASE)
"""What stands before a hint, read from its position backwards."""
NAME_BYTES_MAX = 2_000
"""Bytes before a hint that are looked at: more than the names of a schema and its table."""


class StatementHints:
    """Those of the statement, of JOIN, and of tables, each of which takes its own."""

    def __init__(self, sql: str) -> None:
        self._sql = sql.encode()
        self._hints: dict[str, str] = {}
        self._keyword_hints: list[tuple[str, dict[str, str]]] = []
        self._table_hints: list[tuple[int, dict[str, str]]] = []
        for position, hints in find_hints(sql):
            self._keep(position, hints)

    def move_to_table(self, table: exp.Table, position: int) -> None:
        """Gives a table, whose name stands at a position, its hints."""
        for each in list(self._table_hints):
            if each[0] == position:
                table.meta[HINTS] = each[1]
                self._table_hints.remove(each)

    def move_to_statement(self, parsed: Parsed) -> None:
        """Gives a statement its hints. Raises INVALID_ARGUMENT for one that no table has taken."""
        if self._table_hints:
            raise errors.invalid_argument(
                "A hint stands behind the name of a table, behind JOIN, or before the statement"
            )
        parsed.hints.update(self._hints)
        parsed.keyword_hints.extend(self._keyword_hints)

    def _keep(self, position: int, hints: dict[str, str]) -> None:
        before = self._sql[max(position - NAME_BYTES_MAX, 0) : position][::-1]
        if not before.strip() and position <= NAME_BYTES_MAX:
            self._hints.update(hints)
        elif JOIN_BEFORE.match(before):
            self._keyword_hints.append(("JOIN", hints))
        else:
            table = TABLE_BEFORE.match(before)
            self._table_hints.append((position - table.end() if table else -1, hints))

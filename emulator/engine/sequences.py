"""Counters of IDENTITY columns, their bits reversed so that the values make no hot spot."""

from __future__ import annotations

import apsw

from ddl.schema import Identity, Schema
from emulator.errors import failed_precondition

BITS = 63
CREATE_SEQUENCES = (
    'CREATE TABLE IF NOT EXISTS "$sequences" (name TEXT PRIMARY KEY, counter INTEGER NOT NULL)'
)


def reversed_bits(counter: int) -> int:
    """The 63 bits below the sign in reverse order."""
    return int(f"{counter:0{BITS}b}"[::-1], 2)


def counter_name(table: str, column: str) -> str:
    """How the counter of a column is called."""
    return f"{table}.{column}".casefold()


class Sequences:
    """Draws values on the writing connection; ``save`` makes them last with the commit.

    A value that was drawn in vain is lost, as in Spanner.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rules: dict[str, Identity] = {}
        self._counters: dict[str, int] = {}
        self._drawn: set[str] = set()
        connection.create_scalar_function("next_value_", self.next, 1)

    def load(self, schema: Schema) -> None:
        """Takes the rules from the schema and the counters from the file."""
        self._rules = {
            counter_name(table.name, column.name): column.identity
            for table in schema.tables
            for column in table.columns
            if column.identity is not None
        }
        rows = self._connection.execute('SELECT name, counter FROM "$sequences"').fetchall()
        kept = {str(name): int(str(counter)) for name, counter in rows}
        for name, rule in self._rules.items():
            first = rule.start_counter or 1
            self._counters[name] = max(kept.get(name, first), self._counters.get(name, first))

    def next(self, *arguments: apsw.SQLiteValue) -> int:
        """The next value of a counter."""
        name = str(arguments[0])
        rule = self._rules[name]
        low, high = rule.skip_range or (1, 0)
        while True:
            counter = self._counters[name]
            if counter >= 1 << BITS:
                raise failed_precondition(f"The identity column {name} has no values left.")
            self._counters[name] = counter + 1
            self._drawn.add(name)
            value = reversed_bits(counter)
            if not low <= value <= high:
                return value

    def save(self) -> None:
        """Writes the counters that were drawn from, inside the transaction that commits."""
        for name in self._drawn:
            self._connection.execute(
                'INSERT INTO "$sequences" VALUES (?1, ?2) '
                "ON CONFLICT (name) DO UPDATE SET counter = ?2",
                (name, self._counters[name]),
            )
        self._drawn.clear()

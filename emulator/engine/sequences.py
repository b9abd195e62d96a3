"""Counters of IDENTITY columns and sequences, their bits reversed: the values make no hot spot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import apsw

from emulator.errors import failed_precondition
from emulator.sql.sequences import identity_counter, sequence_counter
from spanner_schema.model.schema import Identity, Schema
from spanner_schema.syntax.sequences import Sequence, read_sequences

BITS = 63
COUNTER_END = 1 << BITS
ATTEMPTS_MAX = 2_000
CREATE_SEQUENCES = (
    'CREATE TABLE IF NOT EXISTS "$sequences" (name TEXT PRIMARY KEY, counter INTEGER NOT NULL)'
)


def reverse_bits(counter: int) -> int:
    """The 63 bits below the sign in reverse order."""
    return int(f"{counter:0{BITS}b}"[::-1], 2)


def counter_rules(schema: Schema) -> Mapping[str, Identity]:
    """How each counter of a schema counts."""
    columns = {
        identity_counter(table.name, column.name): column.identity
        for table in schema.tables
        for column in table.columns
        if column.identity is not None
    }
    named = {
        sequence_counter(name): sequence_rule(each) for name, each in read_sequences(schema).items()
    }
    return columns | named


def sequence_rule(sequence: Sequence) -> Identity:
    """The part of a sequence that counts."""
    low, high = sequence.skip_range_min, sequence.skip_range_max
    skipped = None if low is None or high is None else (low, high)
    return Identity(sequence.start_with_counter, skipped)


class Sequences:
    """Draws values on the writing connection; ``save`` makes them last with the commit.

    A value that was drawn in vain is lost, as in Spanner.
    """

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._rules: Mapping[str, Identity] = {}
        self._counters: dict[str, int] = {}
        self._drawn: set[str] = set()
        connection.create_scalar_function("next_value_", self.next, 1)
        connection.create_scalar_function("sequence_state_", self.state, 2)

    def load(self, schema: Schema) -> None:
        """Takes the rules from the schema and the counters from the file."""
        self._rules = counter_rules(schema)
        rows = self._connection.execute('SELECT name, counter FROM "$sequences"').fetchall()
        self._counters = {str(name): int(str(counter)) for name, counter in rows}

    @contextmanager
    def restored_on_error(self) -> Iterator[None]:
        """Undoes what a failing schema change does here; values that were drawn stay drawn."""
        rules, counters, drawn = self._rules, dict(self._counters), set(self._drawn)
        try:
            yield
        except BaseException:
            self._rules, self._counters, self._drawn = rules, counters, drawn
            raise

    def change(self, schema: Schema, restarted: Mapping[str, int]) -> None:
        """Inside a schema change: forgets what was dropped, and moves counters that were used."""
        self._rules = counter_rules(schema)
        self._counters = {n: c for n, c in self._counters.items() if n in self._rules}
        self._drawn.clear()  # every counter is written below
        for name, first in restarted.items():
            if name in self._counters:
                self._counters[name] = first
        self._connection.execute('DELETE FROM "$sequences"')
        self._connection.executemany(
            'INSERT INTO "$sequences" VALUES (?, ?)', list(self._counters.items())
        )

    def rename(self, origins: Mapping[str, str]) -> None:
        """Counters go on under other names; ``origins`` has what they were called before."""
        counters = dict(self._counters)
        for origin in origins.values():
            self._counters.pop(origin, None)
        for name, origin in origins.items():
            if origin in counters:
                self._counters[name] = counters[origin]

    def next(self, *arguments: apsw.SQLiteValue) -> int:
        """The next value of a counter."""
        name = str(arguments[0])
        rule = self._rules[name]
        low, high = rule.skip_range or (1, 0)
        for _ in range(ATTEMPTS_MAX):
            counter = self._counters.get(name, rule.start_counter or 1)
            if counter >= COUNTER_END:
                break
            self._counters[name] = counter + 1
            self._drawn.add(name)
            value = reverse_bits(counter)
            if not low <= value <= high:
                return value
        kind, _, rest = name.rpartition(" ")
        label = f"Sequence {rest}" if kind else f"Identity column {name}"
        raise failed_precondition(f"{label} is exhausted")

    def state(self, *arguments: apsw.SQLiteValue) -> int | None:
        """The counter, or None before its first value."""
        return self._counters.get(str(arguments[0]))

    def save(self) -> None:
        """Writes the counters that were drawn from, inside the transaction that commits."""
        for name in self._drawn:
            self._connection.execute(
                'INSERT INTO "$sequences" VALUES (?1, ?2) '
                "ON CONFLICT (name) DO UPDATE SET counter = ?2",
                (name, self._counters[name]),
            )
        self._drawn.clear()

"""Writes as prepared SQLite statements: built once per table and columns, run for every commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from emulator.catalog.managed_indexes import all_managed_indexes
from emulator.engine.refusals import (
    generated_column_written,
    unknown_column,
    unknown_table,
)
from emulator.errors import invalid_argument
from emulator.sql.compile import compile_expression
from emulator.sql.sequences import identity_counter
from emulator.sql.statements import Expression
from emulator.storage.sqlite import PENDING, current_table
from emulator.values.forms import timestamp_from_micros
from emulator.values.requests import Stored
from emulator.values.sqlite_text import quote_name, quote_text
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Column, Index, Schema, Table

PENDING_TEXT = "9999-12-31T23:59:59.999999999Z~"
"""Stands in a commit-timestamp column until the commit; above every timestamp."""

Row = tuple[Stored, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """When a write happens: the commit timestamp, or PENDING before it is known.

    ``now`` is the time against which explicit timestamps are checked.
    """

    micros: int
    text: str
    now: str

    @classmethod
    def at(cls, micros: int) -> Moment:
        """A commit at a known timestamp."""
        text = timestamp_from_micros(micros)
        return cls(micros, text, text)

    @classmethod
    def pending(cls, now_micros: int) -> Moment:
        """A write of a transaction that has not committed yet."""
        return cls(PENDING, PENDING_TEXT, timestamp_from_micros(now_micros))


@dataclass(frozen=True, slots=True)
class RowStatement:
    """A statement that binds a row's values by number and then the ``extra`` values of a moment."""

    sql: str
    extra: tuple[str, ...]

    def tail(self, moment: Moment) -> tuple[Stored, ...]:
        """What follows the row's values."""
        values: Mapping[str, Stored] = {
            "ts": moment.micros,
            "commit_": moment.text,
            "now_": moment.now,
        }
        return tuple(values[name] for name in self.extra)


@dataclass(frozen=True, slots=True)
class KeyRule:
    """How the generated columns of a key follow from the columns of a row.

    ``sql`` binds a row and gives them. ``keyed`` is the plan for rows that end with them; it is
    None where the client gave them: they are at ``positions``.
    """

    sql: str
    keyed: WritePlan | None
    positions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WritePlan:
    """How rows of some columns are written into a table.

    ``keys`` are the positions of the key columns in a row (-1: drawn or computed). ``padding`` is
    the number of key columns at the end of ``columns`` that the client left out: they are NULL.
    ``upsert`` is None when an insert-or-update must look for the row first.
    """

    table: Table
    columns: tuple[Column, ...]
    insert: RowStatement
    update: RowStatement
    upsert: RowStatement | None
    delete: str
    find: str
    keys: tuple[int, ...]
    identified: bool
    padding: int
    key_may_be_null: bool
    stampable: frozenset[str]
    timestamps: tuple[int, ...]
    mutations_per_row: int
    mutations_per_update: int
    schema: Schema
    key_rule: KeyRule | None = None

    def mutations_of(self, *, updates: bool) -> int:
        """How many mutations a row counts, as Spanner counts them."""
        return self.mutations_per_update if updates else self.mutations_per_row


def plan_write(schema: Schema, table_name: str, column_names: Sequence[str]) -> WritePlan:
    """The statements for writing these columns, in this order. Raises for unknown names."""
    table = schema.table(table_name)
    if table is None:
        raise unknown_table(table_name)
    columns = tuple(writable_column(table, name) for name in column_names)
    if len({c.name for c in columns}) != len(columns):
        raise invalid_argument(f"A mutation of table {table.name} names a column twice.")
    positions = {c.name: position for position, c in enumerate(columns)}
    key_columns = [key_column(table, part.column) for part in table.primary_key]
    left_out = [c for c in key_columns if c.name not in positions and not has_value(c)]
    columns = (*columns, *left_out)
    positions |= {c.name: len(positions) + n for n, c in enumerate(left_out)}
    keys = tuple(positions.get(c.name, -1) for c in key_columns)
    identified = -1 not in keys
    writer = PlanBuilder(schema, table, columns, positions, key_columns)
    written = columns[: len(columns) - len(left_out)]
    return WritePlan(
        table=table,
        columns=columns,
        insert=writer.insert(),
        update=writer.update() if identified else RowStatement("", ()),
        upsert=writer.upsert() if identified and writer.upsert_in_one_step() else None,
        delete=writer.key_statement(f"DELETE FROM {current_table(table.name)}"),
        find=writer.key_statement(f"SELECT 1 FROM {current_table(table.name)}"),
        keys=keys,
        identified=identified,
        padding=len(left_out),
        key_may_be_null=any(not c.not_null for c in key_columns),
        stampable=stampable_columns(schema, table),
        timestamps=tuple(
            position for position, c in enumerate(columns) if c.type.code is TypeCode.TIMESTAMP
        ),
        mutations_per_row=count_columns(table, written) + len(schema.indexes_of(table.name)),
        mutations_per_update=count_columns(table, written)
        + 2 * len(indexes_updated(schema, table, {c.name.casefold() for c in written})),
        schema=schema,
        key_rule=key_rule(schema, table, columns, key_columns),
    )


def unique_indexes(schema: Schema, table: Table) -> tuple[Index, ...]:
    """The unique indexes of a table, those behind foreign keys that refer to it, too."""
    own = [index for index in schema.indexes_of(table.name) if index.unique]
    managed = [index for owner, index in all_managed_indexes(schema) if owner is table]
    return (*own, *(index for index in managed if index.unique))


def key_rule(
    schema: Schema, table: Table, columns: tuple[Column, ...], key_columns: Sequence[Column]
) -> KeyRule | None:
    """The rule, when the key has generated columns and what they depend on is given."""
    generated = [c for c in key_columns if c.generated is not None]
    written = {c.name for c in columns}
    expressions = [compile_expression(c.generated or "", table, schema, c.type) for c in generated]
    if not generated or any(not written >= set(e.columns) for e in expressions):
        return None
    named = ", ".join(f"?{n} AS {quote_name(c.name)}" for n, c in enumerate(columns, 1))
    sql = f"SELECT {', '.join(e.sql for e in expressions)} FROM (SELECT {named})"
    names = [c.name for c in columns]
    missing = [c.name for c in generated if c.name not in written]
    if missing and len(missing) < len(generated):
        return None
    keyed = plan_write(schema, table.name, [*names, *missing]) if missing else None
    positions = tuple(names.index(c.name) for c in generated if c.name in written)
    return KeyRule(sql, keyed, positions)


def writable_column(table: Table, name: str) -> Column:
    """A column that a client may write."""
    column = table.column(name)
    if column is None:
        raise unknown_column(table.name, name)
    is_key = any(p.column.casefold() == column.name.casefold() for p in table.primary_key)
    if column.generated is not None and not is_key:
        raise generated_column_written(table.name, column.name)
    return column


def has_value(column: Column) -> bool:
    """Whether a column that is left out gets a value nevertheless."""
    return column.default is not None or column.generated is not None or column.identity is not None


def stampable_columns(schema: Schema, table: Table) -> frozenset[str]:
    """The columns that take the commit timestamp: those with the option, and in a key only when
    all tables of the interleaved family agree."""
    family = family_of(schema, table)
    disagreeing = {
        part.column.casefold()
        for member in family
        for part in member.primary_key
        if not allows_commit_timestamp(member, part.column)
    }
    keys = {part.column.casefold() for part in table.primary_key}
    return frozenset(
        c.name
        for c in table.columns
        if c.allow_commit_timestamp and c.name.casefold() not in keys & disagreeing
    )


def allows_commit_timestamp(table: Table, name: str) -> bool:
    """Whether a column has the option for commit timestamps."""
    column = table.column(name)
    return column is not None and column.allow_commit_timestamp


def family_of(schema: Schema, table: Table) -> list[Table]:
    """A table with its ancestors and descendants by interleaving."""
    family = [table]
    while (interleave := family[-1].interleave) is not None:
        parent = schema.table(interleave.parent)
        if parent is None:
            break
        family.append(parent)
    below = {table.name.casefold()}
    for each in schema.tables:
        if each.interleave is not None and each.interleave.parent.casefold() in below:
            below.add(each.name.casefold())
            family.append(each)
    return family


def key_column(table: Table, name: str) -> Column:
    """A column of the primary key."""
    column = table.column(name)
    if column is None:
        raise unknown_column(table.name, name)
    return column


def count_columns(table: Table, written: tuple[Column, ...]) -> int:
    """How many mutations a row of these columns is in the table itself, as Spanner's quotas say.

    The columns, and those of the key even when they are not written. In a table with generated
    columns or defaults, which are columns like any other, those of the key count once more. What
    is measured for indexes: a new row is one mutation in each of them, and an update is two in each
    that has an updated column, because an entry goes and another comes. An upsert counts as a new
    row, whether it is or not.
    """
    names = {column.name for column in written}
    keys = {key_column(table, part.column).name for part in table.primary_key}
    computed = {c.name for c in table.columns if has_value(c)} - names
    return len(names | computed) + len(keys if computed else keys - names)


def indexes_updated(schema: Schema, table: Table, written: set[str]) -> list[Index]:
    """The indexes whose entries an update of these columns (in lower case) replaces."""
    changed = written - {part.column.casefold() for part in table.primary_key}
    return [index for index in schema.indexes_of(table.name) if covers_any(index, changed)]


def covers_any(index: Index, written: set[str]) -> bool:
    """Whether an index keeps one of these columns."""
    kept = {p.column.casefold() for p in index.parts} | {c.casefold() for c in index.storing}
    return bool(kept & written)


class PlanBuilder:
    """Builds the statements of one plan."""

    def __init__(
        self,
        schema: Schema,
        table: Table,
        columns: tuple[Column, ...],
        positions: Mapping[str, int],
        key_columns: Sequence[Column],
    ) -> None:
        self.schema = schema
        self.table = table
        self.columns = columns
        self.positions = positions
        self.key_columns = key_columns
        self.key_names = {c.name for c in key_columns}

    def insert(self) -> RowStatement:
        """INSERT with the defaults of the columns that are not given."""
        written = [(c.name, f"?{self.positions[c.name] + 1}") for c in self.writable()]
        defaults = [
            (c.name, compile_expression(c.default, self.table, self.schema, c.type))
            for c in self.table.columns
            if c.default is not None and c.name not in self.positions
        ]
        pairs = [
            *written,
            ("$ts", f"?{len(self.columns) + 1}"),
            *((name, expression.sql) for name, expression in defaults),
            *self.identities(),
        ]
        names = ", ".join(quote_name(name) for name, _ in pairs)
        values = ", ".join(value for _, value in pairs)
        text = f"INSERT INTO {current_table(self.table.name)} ({names}) VALUES ({values})"
        return RowStatement(
            text, ("ts", *moment_parameters(expression for _, expression in defaults))
        )

    def identities(self) -> list[tuple[str, str]]:
        """The IDENTITY columns that are not given draw their next value."""
        return [
            (c.name, f"next_value_({quote_text(identity_counter(self.table.name, c.name))})")
            for c in self.table.columns
            if c.identity is not None and c.name not in self.positions
        ]

    def writable(self) -> list[Column]:
        """The given columns that SQLite lets us write (a generated key only identifies)."""
        return [c for c in self.columns if c.generated is None]

    def changes(self, commit: str) -> list[tuple[str, str]]:
        """What an update of a row sets: given columns beside the key, and ON UPDATE."""
        settable = [c for c in self.writable() if c.name not in self.key_names]
        pairs = [(c.name, f"?{self.positions[c.name] + 1}") for c in settable]
        if settable:
            pairs += [
                (c.name, commit)
                for c in self.table.columns
                if c.on_update is not None and c.name not in self.positions
            ]
        return pairs

    def update(self) -> RowStatement:
        """UPDATE of the row with the given key; RETURNING shows whether it exists."""
        changes = self.changes(":commit_")
        stamp = f"?{len(self.columns) + 1}"
        moved = ("$ts", stamp if changes else f'coalesce("$ts", {stamp})')
        sets = ", ".join(f"{quote_name(name)} = {value}" for name, value in [moved, *changes])
        where = self.match([f"?{self.positions[c.name] + 1}" for c in self.key_columns])
        text = f"UPDATE {current_table(self.table.name)} SET {sets} WHERE {where} RETURNING 1"
        touched = any(value == ":commit_" for _, value in changes)
        return RowStatement(text, ("ts", "commit_") if touched else ("ts",))

    def upsert(self) -> RowStatement:
        """INSERT .. ON CONFLICT DO UPDATE."""
        insert = self.insert()
        keys = ", ".join(quote_name(c.name) for c in self.key_columns) or '("$ts" IS NULL)'
        changes = self.changes("excluded")
        if not changes:
            return RowStatement(f"{insert.sql} ON CONFLICT ({keys}) DO NOTHING", insert.extra)
        names = [name for name, _ in changes] + ["$ts"]
        sets = ", ".join(f"{quote_name(name)} = excluded.{quote_name(name)}" for name in names)
        return RowStatement(f"{insert.sql} ON CONFLICT ({keys}) DO UPDATE SET {sets}", insert.extra)

    def upsert_in_one_step(self) -> bool:
        """SQLite judges the new row alone first: only right when nothing depends on the old one."""
        written = set(self.positions)
        missing = [c for c in self.table.columns if c.name not in written and c.on_update is None]
        judged = bool(self.table.checks) or any(
            c.generated is not None and (c.not_null or c.name in self.key_names)
            for c in self.table.columns
        )
        return not (judged and missing)

    def key_statement(self, head: str) -> str:
        """A statement about the row with a key; binds the key's parts in order."""
        return f"{head} WHERE {self.match([f'?{n + 1}' for n in range(len(self.key_columns))])}"

    def match(self, values: Sequence[str]) -> str:
        """The condition that finds a row by its key; NULL equals NULL."""
        parts = (
            f"{quote_name(c.name)} {'=' if c.not_null else 'IS'} {value}"
            for c, value in zip(self.key_columns, values, strict=True)
        )
        return " AND ".join(parts) or "TRUE"


def moment_parameters(expressions: Iterable[Expression]) -> list[str]:
    """The named parameters of expressions, in the order in which SQLite numbers them."""
    parameters: dict[str, None] = {}
    for expression in expressions:
        flags = {"commit_": expression.bindings.commit, "now_": expression.bindings.now}
        named = [name for name, used in flags.items() if used]
        for name in sorted(named, key=lambda name: expression.sql.find(f":{name}")):
            parameters[name] = None
    return list(parameters)

"""INSERT, UPDATE and DELETE statements inside a transaction of SQLite."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import apsw

from emulator.engine.conflicts import excluded_values, find_conflict, update_of_conflict
from emulator.engine.failed_rows import refuse_null, refuse_statement
from emulator.engine.mutations import exists, key_of, resolve, write_rows
from emulator.engine.pending_timestamps import PendingTimestamps, commit_columns
from emulator.engine.refusals import (
    other_row_count,
    too_many_mutations,
    unknown_index,
    unknown_table,
)
from emulator.engine.results import rows_in_memory
from emulator.engine.state import SchemaState
from emulator.engine.write_plans import (
    Moment,
    Row,
    WritePlan,
    indexes_updated,
    unique_indexes,
)
from emulator.errors import invalid_argument
from emulator.limits import MUTATIONS_MAX
from emulator.sql.statements import Bindings, Delete, Insert, Returning, Update
from emulator.storage.sqlite import PENDING, current_table, index_name
from emulator.values.requests import DmlResult, MutationKind, Stats, Stored
from emulator.values.sqlite_text import quote_name
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import Column, Table

KINDS = {
    "insert": MutationKind.INSERT,
    "update": MutationKind.INSERT_OR_UPDATE,
    "ignore": MutationKind.INSERT,
}


DmlState = tuple[set[str], set[tuple[str, str]], int]
"""The tables changed, the pending columns and the number of mutations at one time."""


@dataclass(slots=True)
class DmlExecutor:
    """Runs statements on the writing connection and remembers their pending timestamps.

    ``kept`` holds the keys of rows that the last statement met and left as they were.
    """

    connection: apsw.Connection
    state: SchemaState
    pending: PendingTimestamps
    changed: set[str] = field(default_factory=set)
    mutations: int = 0
    kept: list[tuple[Table, Row]] = field(default_factory=list)

    def copy_state(self) -> DmlState:
        """What ``restore`` needs to forget a statement that is taken back."""
        return set(self.changed), set(self.pending.columns), self.mutations

    def restore(self, state: DmlState) -> None:
        """Forgets what was remembered since."""
        self.changed, self.pending.columns, self.mutations = state

    def execute(
        self,
        statement: Insert | Update | Delete,
        params: Mapping[str, Stored],
        moment: Moment,
        rows: str | None = None,
    ) -> DmlResult:
        """Runs a statement; the caller's savepoint takes it back when it fails.

        ``rows`` is bound to ``:rows_``: the rows to which partitioned DML restricts a statement.
        """
        table = self.state.schema.table(statement.table)
        if table is None:
            raise unknown_table(statement.table)
        self.kept = []
        self.pending.refuse_target(statement)
        bindings = bind_parameters(statement.bindings, params, moment)
        if rows is not None:
            bindings["rows_"] = rows
        if isinstance(statement, Insert):
            self.changed.add(table.name.casefold())
            result = self.insert(statement, table, bindings, moment)
        elif isinstance(statement, Update):
            self.changed.add(table.name.casefold())
            result = self.update(statement, table, bindings, moment)
        else:
            self.changed |= self.state.tables_changed_by_delete(table.name)
            result = self.delete(statement, table, bindings)
        if statement.asserted_rows not in {None, result.row_count}:
            raise other_row_count(statement.asserted_rows, result.row_count)
        return result

    def insert(
        self,
        statement: Insert,
        table: Table,
        bindings: Mapping[str, Stored],
        moment: Moment,
    ) -> DmlResult:
        """The rows are worked out first and then written as mutations are."""
        rows: list[Row] = self.connection.execute(statement.rows_sql, bindings).fetchall()
        plan = self.state.write_plan(table.name, statement.columns)
        self.pending.add(
            table, {c for c in commit_columns(table) if may_insert_pending(statement, c)}
        )
        rows = list(resolve(plan, rows, moment))
        if statement.mode == "update":
            refuse_repeated_keys(plan, rows)
        if statement.on_conflict is not None:
            return self.insert_or_resolve(statement, plan, rows, bindings, moment)
        if statement.mode == "ignore":
            rows = self.new_rows(plan, rows)
        # Too many rows are refused before one of them is looked at: clients choose by that error.
        refuse_too_many(len(rows) * plan.mutations_per_row)
        if statement.returning is None:
            write_rows(self.connection, plan, KINDS[statement.mode], rows, moment)
            self.count(len(rows), plan.mutations_per_row)
            return DmlResult(len(rows))
        self.pending.refuse_returned(statement.returning, table)
        returned: list[Row] = []
        for row in rows:
            known = statement.mode == "update" and exists(self.connection, plan, key_of(plan, row))
            write_rows(self.connection, plan, KINDS[statement.mode], [row], moment)
            found = self.read_returned(plan, row, statement.returning, bindings)
            returned += with_action(statement.returning, found, "UPDATE" if known else "INSERT")
        self.count(len(rows), plan.mutations_per_row)
        return result_with_rows(len(rows), statement.returning, returned)

    def insert_or_resolve(
        self,
        statement: Insert,
        plan: WritePlan,
        rows: list[Row],
        bindings: Mapping[str, Stored],
        moment: Moment,
    ) -> DmlResult:
        """INSERT ... ON CONFLICT: row by row, each sees those before it."""
        assert statement.on_conflict is not None
        count, returned = 0, list[Row]()
        for row in rows:
            key = find_conflict(self.connection, plan, statement.on_conflict, row)
            if key is None:
                write_rows(self.connection, plan, MutationKind.INSERT, [row], moment)
                self.count(1, plan.mutations_per_row)
                count += 1
                if statement.returning is not None:
                    inserted = self.read_returned(plan, row, statement.returning, bindings)
                    returned += with_action(statement.returning, inserted, "INSERT")
            elif statement.on_conflict.assignments is not None:
                update = update_of_conflict(statement, plan.table)
                values = {**bindings, **excluded_values(plan, row), **key}
                result = self.update(update, plan.table, values, moment)
                count += result.row_count
                returned += [] if result.returned is None else list(result.returned.rows)
        if statement.returning is None:
            return DmlResult(count)
        return result_with_rows(count, statement.returning, returned)

    def new_rows(self, plan: WritePlan, rows: list[Row]) -> list[Row]:
        """Those whose key is neither in the table nor earlier among the rows."""
        seen: set[Row] = set()
        fresh = []
        for row in rows:
            key = key_of(plan, row)
            if plan.identified and (key in seen or exists(self.connection, plan, key)):
                self.kept.append((plan.table, key))
                continue
            seen.add(key)
            fresh.append(row)
        return fresh

    def read_returned(
        self, plan: WritePlan, row: Row, returning: Returning, bindings: Mapping[str, Stored]
    ) -> list[Row]:
        """THEN RETURN of a row that was just written."""
        expressions = returned_text(returning, plan.table.name, plan.table)
        head = f"SELECT {expressions} FROM {current_table(plan.table.name)} WHERE "
        values = dict(bindings)
        if plan.identified:
            key = key_of(plan, row)
            names = [part.column for part in plan.table.primary_key]
            match = " AND ".join(f"{quote_name(n)} IS :key_{i}" for i, n in enumerate(names))
            values |= {f"key_{i}": part for i, part in enumerate(key)}
        else:
            match = "_rowid_ = :row_"
            values["row_"] = self.connection.last_insert_rowid()
        return self.connection.execute(head + match, values).fetchall()

    def update(
        self, statement: Update, table: Table, bindings: Mapping[str, Stored], moment: Moment
    ) -> DmlResult:
        """One UPDATE; ON UPDATE columns that it does not set come along."""
        statement = forget_explicit(statement, table)
        assigned = {name.casefold() for name, _ in statement.assignments}
        automatic = [
            (c.name, ":commit_")
            for c in table.columns
            if assigned
            and c.on_update is not None
            and c.name.casefold() not in assigned
            and not leaves_timestamp(statement, moment)
        ]
        pairs = [*statement.assignments, *automatic, ("$ts", ":ts_")]
        sets = ", ".join(f"{quote_name(name)} = {value}" for name, value in pairs)
        pending = {name.casefold() for name, value in pairs if ":commit_" in value}
        self.pending.add(table, {c for c in commit_columns(table) if c.name.casefold() in pending})
        values = {**bindings, "ts_": moment.micros, "commit_": moment.text}
        target = self.target(table, statement.alias, statement.index)
        sql = f"UPDATE {target} SET {sets} WHERE {statement.where_sql}"
        result = self.run(sql, values, statement, table)
        written = assigned | {c.name.casefold() for c in table.columns if c.on_update}
        columns = written | {part.column.casefold() for part in table.primary_key}
        replaced = indexes_updated(self.state.schema, table, written)
        self.count(result.row_count, len(columns) + 2 * len(replaced))
        for column in commit_columns(table):
            if column.name.casefold() in assigned - pending:
                self.pending.refuse_future(table, column, moment)
        return result

    def delete(self, statement: Delete, table: Table, bindings: Mapping[str, Stored]) -> DmlResult:
        """One DELETE."""
        target = self.target(table, statement.alias, statement.index)
        sql = f"DELETE FROM {target} WHERE {statement.where_sql}"
        result = self.run(sql, bindings, statement, table)
        self.count(result.row_count, 1 + len(self.state.schema.indexes_of(table.name)))
        return result

    def count(self, rows: int, mutations_per_row: int) -> None:
        """Adds to the transaction's mutations. Raises for more than a statement may have."""
        refuse_too_many(rows * mutations_per_row)
        self.mutations += rows * mutations_per_row

    def run(
        self,
        sql: str,
        bindings: Mapping[str, Stored],
        statement: Update | Delete,
        table: Table,
    ) -> DmlResult:
        """Runs an UPDATE or DELETE and counts its rows."""
        returning = statement.returning
        if returning is None:
            self.change(sql, bindings, table)
            return DmlResult(self.connection.changes())
        self.pending.refuse_returned(returning, table)
        text = f"{sql} RETURNING {returned_text(returning, statement.alias, table)}"
        rows = self.change(text, bindings, table)
        action = "UPDATE" if isinstance(statement, Update) else "DELETE"
        return result_with_rows(len(rows), returning, with_action(returning, rows, action))

    def change(self, sql: str, bindings: Mapping[str, Stored], table: Table) -> list[Row]:
        """Runs a statement of SQLite that changes rows of a table; what it returns."""
        try:
            rows: list[Row] = self.connection.execute(sql, bindings).fetchall()
        except apsw.ConstraintError as error:
            refuse_null(table, error)
            unique = unique_indexes(self.state.schema, table)
            refuse_statement(self.connection, table, unique, error, sql, bindings)
            raise
        return rows

    def target(self, table: Table, alias: str, index: str | None) -> str:
        """The table of an UPDATE or DELETE, with its forced index."""
        hint = ""
        if index is not None:
            forced = self.state.schema.index(index)
            if forced is None:
                raise unknown_index(index, table.name)
            hint = f" INDEXED BY {index_name(forced.name)}"
        return f"{current_table(table.name)} AS {quote_name(alias)}{hint}"


def bind_parameters(
    bindings: Bindings, params: Mapping[str, Stored], moment: Moment
) -> dict[str, Stored]:
    """The values of a statement's parameters. Raises for one that the client did not send."""
    sent = {name.casefold(): value for name, value in params.items()}
    values: dict[str, Stored] = {}
    for parameter in bindings.user:
        name = parameter.name.casefold()
        if name not in sent:
            raise invalid_argument(f"No parameter found for binding: {parameter.name}")
        values[f"p_{name}"] = sent[name]
    if bindings.now:
        values["now_"] = moment.now
    if bindings.commit:
        values["commit_"] = moment.text
    return values


def count_scans(statement: Update | Delete) -> Update | Delete:
    """A statement that counts the rows of its table that it visits."""
    visited = f"scanned_({quote_name(statement.alias)}._rowid_)"
    return replace(statement, where_sql=f"{visited} AND ({statement.where_sql})")


def may_insert_pending(statement: Insert, column: Column) -> bool:
    """Whether an INSERT may leave the pending commit timestamp in a column."""
    if column.name.casefold() in {name.casefold() for name in statement.columns}:
        return statement.bindings.commit
    return column.default is not None


def refuse_repeated_keys(plan: WritePlan, rows: list[Row]) -> None:
    """INSERT OR UPDATE may not meet a row twice."""
    seen: set[Row] = set()
    for row in rows:
        key = key_of(plan, row)
        if plan.identified and key in seen:
            raise invalid_argument(f"Cannot affect a row second time for key: {key}")
        seen.add(key)


def returned_text(returning: Returning, alias: str, table: Table) -> str:
    """The expressions of THEN RETURN; SQLite's RETURNING knows the table, not its alias."""
    name = current_table(table.name)
    return ", ".join(t.replace(f"{quote_name(alias)}.", f"{name}.") for t in returning.expressions)


def with_action(returning: Returning, rows: list[Row], action: str) -> list[Row]:
    """The rows, WITH ACTION where it is asked for."""
    return [(*row, action) for row in rows] if returning.action else rows


def result_with_rows(count: int, returning: Returning, rows: list[Row]) -> DmlResult:
    """A result with the rows of THEN RETURN."""
    return DmlResult(count, rows_in_memory(returning.columns, rows, Stats()))


def leaves_timestamp(statement: Update, moment: Moment) -> bool:
    """Whether an UPDATE is wrong on purpose: its ON UPDATE does not fire."""
    if ":key_0" in statement.where_sql:  # DO UPDATE of INSERT ... ON CONFLICT
        return is_wrong(Wrong.ON_UPDATE_UPSERT)
    if moment.micros != PENDING:
        return is_wrong(Wrong.ON_UPDATE_PARTITIONED)
    same = all(value.endswith(quote_name(name)) for name, value in statement.assignments)
    return is_wrong(Wrong.ON_UPDATE_SAME_VALUE if same else Wrong.ON_UPDATE_DML)


def forget_explicit(statement: Update, table: Table) -> Update:
    """The same UPDATE; wrong on purpose, ON UPDATE overrules values that are given."""

    def is_forgotten(name: str, value: str) -> bool:
        column = table.column(name)
        if column is None or column.on_update is None:
            return False
        itself = value.endswith(quote_name(name)) and is_wrong(Wrong.EXPLICIT_VALUE_WINS)
        return itself or (value == "NULL" and is_wrong(Wrong.EXPLICIT_NULL_WINS))

    assignments = tuple(
        (name, ":commit_" if is_forgotten(name, value) else value)
        for name, value in statement.assignments
    )
    return replace(statement, assignments=assignments)


def refuse_too_many(mutations: int) -> None:
    """Raises for more mutations than a statement may have."""
    if mutations > MUTATIONS_MAX:
        raise too_many_mutations()

"""DDL statements: the schema's next value, and the file's tables brought in line with it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import apsw

from ddl.rules.evolve import apply_step
from ddl.rules.limits import STATEMENT_BYTES_MAX, check_counts, check_names_and_keys
from emulator.engine import proto_bundle
from emulator.engine.change_streams.rules import check as check_streams
from emulator.engine.ddl_statements import language, parse_step
from emulator.engine.definitions import counters_to_restart, resolve_step
from emulator.engine.function_rules import check_uses
from emulator.engine.refusals import translate_error
from emulator.engine.schema_rules import (
    SchemaChange,
    check_change,
    name_constraints,
    placements,
    refuse_drop_of_managed_index,
    resolve_types,
)
from emulator.engine.schema_rules.expression_spelling import spell_expressions
from emulator.engine.schema_rules.grants import grants_after
from emulator.engine.schema_rules.options import refuse_options, retention_seconds
from emulator.engine.schema_rules.statistics import name_package, packages_after
from emulator.engine.schema_rules.syntax import refuse_syntax
from emulator.engine.state import SchemaState
from emulator.engine.versions import SchemaVersion
from emulator.engine.view_rules import check_views
from emulator.engine.writer import DatabaseWriter
from emulator.errors import (
    SpannerError,
    failed_precondition,
    invalid_argument,
    not_found,
)
from emulator.sql.compile import compile_expression
from emulator.sql.sequences import identity_counter
from emulator.storage import proto_values
from emulator.storage.archives import Archive
from emulator.storage.conversions import refuse_invalid_text
from emulator.storage.integrity import missing_parents, missing_references
from emulator.storage.layout import TableLayout, table_layouts
from emulator.storage.migration import Backfill, Layouts, migrate
from emulator.storage.sqlite import current_table
from emulator.storage.statements import ExecutedStatement, save_statement
from emulator.values.forms import timestamp_from_micros
from emulator.values.sqlite_text import quote_name, quote_text
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model import steps
from spanner_schema.model.errors import (
    ConstraintNotFoundError,
    DdlError,
    DdlSyntaxError,
    InvalidDefinitionError,
    NameNotFoundError,
)
from spanner_schema.model.schema import Column, Dialect, Schema, Table
from spanner_schema.syntax.render import render_schema

Checked = TypeVar("Checked")
LOCK_WAIT_SECONDS = 600.0
DDL_GROWTH_MAX = 4
"""So many times the length of what was executed is what GetDatabaseDdl writes of it, at most."""


def change_schema(
    writer: DatabaseWriter,
    text: str,
    descriptors: bytes = b"",
    partitions: placements.InstancePartitions = tuple,
) -> int:
    """Executes one DDL statement; returns its commit timestamp. An error changes nothing.

    ``descriptors`` are those that came with the statement, for a proto bundle; ``partitions`` tells
    the partitions of the instance, for a placement.
    """
    writer.turn.acquire(LOCK_WAIT_SECONDS)
    try:
        state = writer.state
        parsed = parse_step(text, *language(state.schema), strict=True)
        named = name_package(parsed, state.schema, writer.clock.wall())
        if isinstance(named, steps.OtherStatement) and named is not parsed:
            text = named.text
        step = resolve_table(named, state.schema)
        refuse_options(step, state.schema)
        refuse(check_names_and_keys, step)
        schema = evolve_schema(state.schema, step, descriptors)
        placements.refuse_unknown_partition(state.schema, step, partitions)
        refuse(check_counts, schema)
        refuse_large_ddl(schema, writer.ddl_bytes + len(text.encode()))
        restarts = counters_to_restart(state.schema, step)
        change = DdlChange(writer, step, text, descriptors, schema, restarts)
        with writer.sequences.restored_on_error():
            micros = writer.commit_alone(change.execute, change.publish)
        writer.capture.load()
        return micros
    finally:
        writer.turn.release()


class DdlChange:
    """One statement while it is executed: its next schema, and the tables that it archives."""

    def __init__(
        self,
        writer: DatabaseWriter,
        step: steps.Step,
        text: str,
        descriptors: bytes,
        schema: Schema,
        restarts: dict[str, int],
    ) -> None:
        self._writer = writer
        self._step = step
        self._text = text
        self._descriptors = descriptors
        self._schema = schema
        self._restarts = restarts
        self._layouts = table_layouts(schema, writer.state.layouts)
        self._archives: list[Archive] = []

    def execute(self, micros: int) -> None:
        """Everything that the statement changes in the file, inside its transaction."""
        writer, schema, before = self._writer, self._schema, self._writer.state
        connection = writer.connection
        renamed = rename_before(self._step, before.schema)
        origins = find_origins(self._step)
        writer.sequences.rename(renamed_counters(origins, schema))
        writer.sequences.change(schema, self._restarts)
        placements.refuse_used_placements(connection, self._step, before.schema)
        refuse_invalid_values(connection, SchemaChange(renamed, self._step, schema))
        proto_values.refuse_invalid_values(connection, renamed, schema)
        self._archives = rewrite(connection, before.layouts, self._layouts, schema, micros, origins)
        check_existing_rows(connection, self._step, schema, micros)
        writer.capture.apply_stream_changes(before.schema, schema, micros)
        writer.sequences.save()
        kept = self._descriptors if proto_bundle.changes_bundle(self._step) else b""
        save_statement(connection, ExecutedStatement(self._text, micros, kept))
        connection.execute('UPDATE "$state" SET schema_version = ?', (before.version + 1,))

    def publish(self, micros: int) -> None:
        """The schema is valid from the commit timestamp on; open transactions are aborted."""
        writer = self._writer
        writer.versions.add(SchemaVersion(micros, self._schema), self._archives)
        writer.state = SchemaState(writer.state.version + 1, self._schema, self._layouts, micros)
        writer.ddl_bytes += len(self._text.encode())
        writer.locks.wound_all()


def replay_statements(
    statements: Sequence[ExecutedStatement], dialect: Dialect
) -> list[SchemaVersion]:
    """The schemas after each of a database's statements, from the empty one on."""
    versions = [SchemaVersion(0, Schema(dialect=dialect))]
    for statement in statements:
        schema = versions[-1].schema
        step = resolve_table(parse_step(statement.text, *language(schema)), schema)
        schema = evolve_schema(schema, step, statement.descriptors, checked=False)
        versions.append(SchemaVersion(statement.micros, schema))
    return versions


def evolve_schema(
    schema: Schema, step: steps.Step, descriptors: bytes = b"", *, checked: bool = True
) -> Schema:
    """The schema after a step, in the server's errors.

    ``descriptors`` are those of a statement about the proto bundle. ``checked`` is False for
    a statement that was executed long ago, maybe under other rules.
    """
    if checked:
        proto_bundle.refuse_missing_bundle(schema, step)
    try:
        taken = resolve_step(schema, name_constraints(schema, step))
        after = schema if taken is None else apply_step(schema, taken)
        altered = proto_bundle.changes_bundle(step)
        if altered:
            after = proto_bundle.keep_descriptors(schema, after, step, descriptors, checked=checked)
        after = resolve_types(after, altered=altered, checked=checked)
        after = spell_expressions(schema, after)
        after = replace(
            after, grants=grants_after(after, step), statistics=packages_after(after, step)
        )
    except (NameNotFoundError, ConstraintNotFoundError) as error:
        if isinstance(step, steps.DropIndex):
            refuse_drop_of_managed_index(schema, step.name)
        raise not_found(str(error)) from error
    except DdlSyntaxError as error:
        text = step.item.text if isinstance(step, steps.CreateVerbatim) else ""
        text = step.text if isinstance(step, steps.OtherStatement) else text
        raise refuse_syntax(text, error) from error
    except DdlError as error:
        raise explain_refusal(error) from error
    if taken is not None and checked:
        check_change(SchemaChange(rename_before(taken, schema), taken, after))
    retention_seconds(after.options)
    check_streams(after)
    after = check_views(schema, after, step)
    check_uses(after, step)
    return after


def rename_before(step: steps.Step, schema: Schema) -> Schema:
    """The schema before a step, with the names that tables have after it."""
    return apply_step(schema, step) if isinstance(step, steps.RenameTables) else schema


def refuse(check: Callable[[Checked], None], checked: Checked) -> None:
    """Checks a step or a schema against Spanner's limits."""
    try:
        check(checked)
    except DdlError as error:
        raise explain_refusal(error) from error


def refuse_large_ddl(schema: Schema, executed: int) -> None:
    """The statements that GetDatabaseDdl returns have a greatest size.

    To write them takes as long as the schema is: nobody does while the statements that were
    ``executed``, in bytes, are far from that size.
    """
    if executed <= STATEMENT_BYTES_MAX // DDL_GROWTH_MAX:
        return
    size = sum(len(statement.encode()) for statement in render_schema(schema))
    if size > STATEMENT_BYTES_MAX:
        raise invalid_argument(
            f"The DDL of the database would have {size} bytes, more than the maximum of"
            f" {STATEMENT_BYTES_MAX}."
        )


def explain_refusal(error: DdlError) -> SpannerError:
    """The error for a statement that does not fit, or is wrong in itself."""
    invalid = isinstance(error, InvalidDefinitionError)
    return invalid_argument(str(error)) if invalid else failed_precondition(str(error))


def resolve_table(step: steps.Step, schema: Schema) -> steps.Step:
    """The step of ALTER TABLE IF EXISTS, or one that does nothing where the table is missing."""
    if not isinstance(step, steps.AlterTableIfExists):
        return step
    if schema.table(step.table) is None:
        return steps.OtherStatement("ANALYZE", "")
    return step.step


def find_origins(step: steps.Step) -> Mapping[str, str]:
    """What tables that a step renames were called before, both in lower case."""
    return step.find_origins() if isinstance(step, steps.RenameTables) else {}


def renamed_counters(origins: Mapping[str, str], schema: Schema) -> Mapping[str, str]:
    """What the counters of identity columns of renamed tables were called before."""
    return {
        identity_counter(table.name, column.name): identity_counter(origin, column.name)
        for name, origin in origins.items()
        if (table := schema.table(name)) is not None
        for column in table.columns
        if column.identity is not None
    }


def rewrite(
    connection: apsw.Connection,
    before: Layouts,
    after: Layouts,
    schema: Schema,
    micros: int,
    origins: Mapping[str, str],
) -> list[Archive]:
    """Changes tables, indexes and triggers; rows that violate them are FAILED_PRECONDITION.
    ``origins``: what renamed tables were called before."""
    # Two tables of one form that swap their names have the same layouts, and other rows.
    old = layouts_not_in(before, after) | {name: before[name] for name in origins.values()}
    new = layouts_not_in(after, before) | {name: after[name] for name in origins}
    now = timestamp_from_micros(micros)
    filled = {} if is_wrong(Wrong.DEFAULT_FILLS_ROWS) else default_expressions(schema, new)
    backfill = Backfill(filled, {"now_": now, "commit_": now}, micros)
    try:
        return migrate(connection, old, new, backfill, origins)
    except apsw.ConstraintError as error:
        refusal = translate_error(error, schema)
        raise failed_precondition(
            f"Existing rows violate the new schema: {refusal.message}"
        ) from error


def layouts_not_in(layouts: Layouts, others: Layouts) -> dict[str, TableLayout]:
    """Those that are not among the others; what a statement leaves alone is the same object."""
    return {name: each for name, each in layouts.items() if each is not others.get(name)}


def default_expressions(schema: Schema, names: Container[str]) -> Mapping[tuple[str, str], str]:
    """What fills the new columns of some tables (in lower case), as SQLite text."""
    return {
        (table.name.casefold(), column.name.casefold()): text
        for table in schema.tables
        if table.name.casefold() in names
        for column in table.columns
        if (text := value_of_new_column(column, table, schema)) is not None
    }


def value_of_new_column(column: Column, table: Table, schema: Schema) -> str | None:
    """The value that the rows that are there already get, as SQLite text; None for NULL."""
    if column.identity is not None:
        return f"next_value_({quote_text(identity_counter(table.name, column.name))})"
    if column.default is None:
        return None
    return compile_expression(column.default, table, schema, column.type).sql


def refuse_invalid_values(connection: apsw.Connection, change: SchemaChange) -> None:
    """Values that cannot be converted to the new type of their column are FAILED_PRECONDITION."""
    for old_table, old, _, column in change.altered_columns():
        if old.type != column.type:
            refuse_invalid_text(connection, old_table, old, column.type)


def check_existing_rows(
    connection: apsw.Connection, step: steps.Step, schema: Schema, micros: int
) -> None:
    """Checks existing rows against a new rule that no constraint of SQLite enforces."""
    if isinstance(step, steps.AddForeignKey) and step.foreign_key.enforced:
        table = schema.table(step.table)
        if table is not None:
            refuse_rows(
                connection,
                missing_references(table, step.foreign_key),
                f"Foreign key constraint violation on table `{table.name}`: no referenced key for",
            )
    if isinstance(step, steps.SetInterleave) and step.interleave.enforced:
        table, parent = schema.table(step.table), schema.table(step.interleave.parent)
        if table is not None and parent is not None:
            refuse_rows(
                connection,
                missing_parents(table, parent),
                f"Parent-child row existence constraint validation failed for table {table.name} "
                "at row key",
            )
    if isinstance(step, steps.SetColumnOptions):
        refuse_future_timestamps(connection, step, schema, micros)


def refuse_rows(connection: apsw.Connection, sql: str, message: str) -> None:
    """Raises when a query finds a row."""
    row = connection.execute(sql).fetchone()
    if row is not None:
        raise failed_precondition(f"{message} {row[0]}.")


def refuse_future_timestamps(
    connection: apsw.Connection, step: steps.SetColumnOptions, schema: Schema, micros: int
) -> None:
    """A column that becomes a commit-timestamp column holds nothing from the future."""
    table = schema.table(step.table)
    column = table.column(step.column) if table is not None else None
    if table is None or column is None or not column.allow_commit_timestamp:
        return
    name = quote_name(column.name)
    row = connection.execute(
        f"SELECT {name} FROM {current_table(table.name)} WHERE {name} > ? LIMIT 1",
        (timestamp_from_micros(micros),),
    ).fetchone()
    if row is not None:
        raise failed_precondition(
            f"Setting allow_commit_timestamp option on column {column.name} is not allowed because "
            f"it has a timestamp in the future: {row[0]}"
        )

"""DDL statements: the schema's next value, and the file's tables brought in line with it."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import apsw

from ddl import steps
from ddl.errors import DdlError, NameNotFoundError
from ddl.evolve import apply_step
from ddl.parse import parse_statement
from ddl.schema import Column, Dialect, Schema, TypeCode
from emulator.engine import proto_bundle
from emulator.engine.change_streams.rules import check as check_streams
from emulator.engine.definitions import counters_to_restart, resolve_step
from emulator.engine.refusals import translate_error
from emulator.engine.schema_limits import refuse_long_names_and_keys, refuse_too_many
from emulator.engine.state import SchemaState
from emulator.engine.versions import SchemaVersion
from emulator.engine.view_rules import check_views
from emulator.engine.writer import DatabaseWriter
from emulator.errors import (
    SpannerError,
    failed_precondition,
    invalid_argument,
    not_found,
    unimplemented,
)
from emulator.sql.compile import compile_expression
from emulator.storage.archives import Archive
from emulator.storage.integrity import missing_parents, missing_references
from emulator.storage.layout import table_layouts
from emulator.storage.migration import Backfill, Layouts, migrate
from emulator.storage.sqlite import current_table
from emulator.storage.statements import ExecutedStatement, save_statement
from emulator.values.forms import timestamp_from_micros
from emulator.values.sqlite_text import quote_name
from emulator.values.types import FLOATS

LOCK_WAIT_SECONDS = 600.0
RECORDED_KINDS = {"ROLE", "CHANGE STREAM", "VIEW", "SEQUENCE", proto_bundle.KIND}
ALTERATIONS = {"GRANT", "REVOKE", "ANALYZE", "ALTER SEQUENCE", "ALTER IDENTITY"}
DURATION_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
DEFAULT_TIME_ZONE = "America/Los_Angeles"
RETENTION_SECONDS_MIN = 3_600
RETENTION_SECONDS_MAX = 7 * 86_400


def change_schema(writer: DatabaseWriter, text: str, descriptors: bytes = b"") -> int:
    """Executes one DDL statement; returns its commit timestamp. An error changes nothing.

    ``descriptors`` are those that came with the statement, for a proto bundle.
    """
    writer.turn.acquire(LOCK_WAIT_SECONDS)
    try:
        state = writer.state
        step = parse_step(text, state.schema.dialect)
        proto_bundle.check_bundle(step, descriptors)
        refuse_options(step)
        refuse_types(step)
        refuse_long_names_and_keys(step)
        schema = evolve_schema(state.schema, step)
        refuse_too_many(schema)
        restarts = counters_to_restart(state.schema, step)
        change = DdlChange(writer, step, text, descriptors, schema, restarts)
        micros = writer.commit_alone(change.execute, change.publish)
        writer.capture.load()
        return micros
    finally:
        writer.sequences.load(writer.state.schema)
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
        writer.sequences.change(schema, self._restarts)
        self._archives = rewrite(connection, before.layouts, self._layouts, schema, micros)
        check_existing_rows(connection, self._step, schema, micros)
        proto_bundle.save_bundle(connection, self._step, self._descriptors)
        writer.capture.apply_stream_changes(before.schema, schema, micros)
        writer.sequences.save()
        save_statement(connection, self._text, micros)
        connection.execute('UPDATE "$state" SET schema_version = ?', (before.version + 1,))

    def publish(self, micros: int) -> None:
        """The schema is valid from the commit timestamp on; open transactions are aborted."""
        writer = self._writer
        writer.versions.add(SchemaVersion(micros, self._schema), self._archives)
        writer.state = SchemaState(writer.state.version + 1, self._schema, self._layouts, micros)
        writer.locks.wound_all()


def replay_statements(
    statements: Sequence[ExecutedStatement], dialect: Dialect
) -> list[SchemaVersion]:
    """The schemas after each of a database's statements, from the empty one on."""
    versions = [SchemaVersion(0, Schema(dialect=dialect))]
    for statement in statements:
        schema = evolve_schema(versions[-1].schema, parse_step(statement.text, dialect))
        versions.append(SchemaVersion(statement.micros, schema))
    return versions


def parse_step(text: str, dialect: Dialect) -> steps.Step:
    """The step that a statement says. Raises INVALID_ARGUMENT with the place of the error."""
    try:
        step = parse_statement(text, dialect)
    except DdlError as error:
        raise invalid_argument(f"Error parsing Spanner DDL statement: {text} : {error}") from error
    if isinstance(step, steps.CreateVerbatim) and step.item.kind not in RECORDED_KINDS:
        raise unimplemented(f"CREATE {step.item.kind}")
    if isinstance(step, steps.OtherStatement) and step.kind not in ALTERATIONS:
        raise unimplemented(step.kind)
    return step


def step_columns(step: steps.Step) -> tuple[Column, ...]:
    """The columns that a step defines."""
    if isinstance(step, steps.CreateTable):
        return step.table.columns
    if isinstance(step, steps.AddColumn | steps.AlterColumn):
        return (step.column,)
    return ()


def refuse_options(step: steps.Step) -> None:
    """Options of a database that would change answers and do not here."""
    for name, value in step.options if isinstance(step, steps.AlterDatabase) else ():
        if name.casefold() == "default_time_zone" and (value or DEFAULT_TIME_ZONE) not in {
            DEFAULT_TIME_ZONE,
            f"'{DEFAULT_TIME_ZONE}'",
            f'"{DEFAULT_TIME_ZONE}"',
        }:
            raise unimplemented(f"A default_time_zone other than {DEFAULT_TIME_ZONE}")


def refuse_types(step: steps.Step) -> None:
    """INTERVAL is a type of expressions only; only arrays of floats are vectors."""
    for column in step_columns(step):
        element = column.type.element
        vector = column.type.vector_length is not None
        if vector and (element is None or element.code not in FLOATS):
            raise invalid_argument(
                f"Column {column.name}: `vector_length` can only be applied on ARRAY<FLOAT32> or "
                "ARRAY<FLOAT64>."
            )
        if vector and column.generated is not None and not column.stored:
            raise invalid_argument(
                f"Column {column.name}: `vector_length` cannot be applied on a generated column "
                "that is not stored."
            )
        if TypeCode.INTERVAL in (column.type.code, element and element.code):
            raise failed_precondition(f"Column {column.name}: INTERVAL cannot be a column type.")


def evolve_schema(schema: Schema, step: steps.Step) -> Schema:
    """The schema after a step, in the server's errors."""
    try:
        taken = resolve_step(schema, step)
        after = schema if taken is None else apply_step(schema, taken)
    except NameNotFoundError as error:
        raise not_found(str(error)) from error
    except DdlError as error:
        raise failed_precondition(str(error)) from error
    retention_seconds(after.options)
    check_streams(after)
    return check_views(schema, after, step)


def rewrite(
    connection: apsw.Connection, before: Layouts, after: Layouts, schema: Schema, micros: int
) -> list[Archive]:
    """Changes tables, indexes and triggers; rows that violate them are FAILED_PRECONDITION."""
    old, new = layouts_not_in(before, after), layouts_not_in(after, before)
    now = timestamp_from_micros(micros)
    backfill = Backfill(default_expressions(schema, new), {"now_": now, "commit_": now}, micros)
    try:
        return migrate(connection, old, new, backfill)
    except apsw.ConstraintError as error:
        refusal = translate_error(error, schema)
        raise failed_precondition(
            f"Existing rows violate the new schema: {refusal.message}"
        ) from error


def layouts_not_in(layouts: Layouts, others: Layouts) -> Layouts:
    """Those that are not among the others; what a statement leaves alone is the same object."""
    return {name: each for name, each in layouts.items() if each is not others.get(name)}


def default_expressions(schema: Schema, names: Container[str]) -> Mapping[tuple[str, str], str]:
    """The defaults of the columns of some tables (in lower case), as SQLite text."""
    return {
        (table.name.casefold(), column.name.casefold()): compile_expression(
            column.default, table, schema
        ).sql
        for table in schema.tables
        if table.name.casefold() in names
        for column in table.columns
        if column.default is not None
    }


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


def retention_seconds(options: Mapping[str, str]) -> int:
    """``version_retention_period``: one hour to seven days, one hour by default."""
    text = options.get("version_retention_period", "1h").strip("'\"")
    number, unit = text[:-1], text[-1:]
    if not number.isdigit() or unit not in DURATION_SECONDS:
        raise invalid_retention(text)
    seconds = int(number) * DURATION_SECONDS[unit]
    if not RETENTION_SECONDS_MIN <= seconds <= RETENTION_SECONDS_MAX:
        raise invalid_retention(text)
    return seconds


def invalid_retention(text: str) -> SpannerError:
    """A retention period that Spanner does not offer."""
    return invalid_argument(
        f"Invalid version_retention_period '{text}': it must be between 1h and 7d, such as '36h'."
    )

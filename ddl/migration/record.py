"""Writes the records of what ``ddl apply`` added and took over, kept in the database.

``ddl rollback`` removes only what was added, and clearing erases only what is ours or taken over.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet
from google.cloud.spanner_v1.database import Database

from ddl.migration.plan import Plan
from ddl.rules.dependents import list_dependents, name_dropped
from ddl.rules.evolve import apply_step
from ddl.rules.limits import TABLES_MAX
from spanner_schema.model.errors import NameNotFoundError, PlanError, SchemaError
from spanner_schema.model.names import TABLE_NAME_CHARACTERS_MAX, same_name
from spanner_schema.model.schema import Dialect, Schema, Table
from spanner_schema.model.steps import (
    AddColumn,
    AlterChangeStream,
    CreateIndex,
    CreateTable,
    DropChangeStream,
    DropColumn,
    DropIndex,
    DropTable,
    Step,
    redefine_column,
)
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.syntax.render import render_step
from spanner_schema.watched.ownership import fold
from spanner_schema.watched.records import (
    RECORDED_SCHEMA,
    RECORDS,
    TABLE,
    TAKEN_OVER,
    WATCHED,
    Record,
    read_records,
)


def record_plan(database: Database, plan: Plan, schema: Schema) -> None:
    """Records how to undo a plan and what it takes over, before it is applied.

    Statements of an earlier plan that was interrupted stay, after those of this one.
    """
    create_records_table(database, schema)
    records = read_records(database, RECORDED_SCHEMA)
    tables = dict.fromkeys([each.table for each in plan.statements])
    tables |= dict.fromkeys(each.table for each in plan.taken_over)
    rows = []
    for table in tables:
        record = records.get(table, Record())
        of_table = [s for s in reversed(plan.statements) if s.table == table]
        down = [sql for statement in of_table for sql in statement.undo]
        down += [sql for sql in record.down if sql not in down]
        taken = [each.name for each in plan.taken_over if each.table == table]
        taken = list(dict.fromkeys((*record.taken_over, *taken)))
        kept = leave_out_pairs(down, schema.dialect)
        rows.append((table, json.dumps(kept), COMMIT_TIMESTAMP, json.dumps(taken)))
    columns = ("WatchedTable", "Down", "RecordedAt", TAKEN_OVER.name)
    with database.batch() as batch:
        batch.insert_or_update(TABLE, columns, rows)


def create_records_table(database: Database, schema: Schema) -> None:
    """Creates the table of records, or brings one of an earlier release up to date. Raises
    PlanError where there is no room for a table."""
    table = schema.table(TABLE)
    if table is None:
        if len(schema.tables) >= TABLES_MAX:
            raise PlanError(
                f"the database has {len(schema.tables):,} tables, Spanner's limit: drop one, so"
                f" that {TABLE} can be created, which records what 'ddl rollback' is to remove"
            )
        missing: list[Step] = [CreateTable(RECORDS, if_not_exists=True)]
    else:
        missing = list_outdated(table, schema.dialect)
    if missing:
        database.update_ddl([render_step(step, schema.dialect) for step in missing]).result(600)


def list_outdated(table: Table, dialect: Dialect) -> list[Step]:
    """The steps that bring a table of records of an earlier release up to date."""
    outdated: list[Step] = []
    if table.column(TAKEN_OVER.name) is None:
        outdated.append(AddColumn(TABLE, TAKEN_OVER, if_not_exists=True))
    watched = table.column(WATCHED.name)
    if watched is not None and (watched.type.length or 0) < TABLE_NAME_CHARACTERS_MAX:
        outdated.append(redefine_column(TABLE, WATCHED, dialect))
    return outdated


def leave_out_pairs(statements: Sequence[str], dialect: Dialect) -> list[str]:
    """The statements without what is made anew and then dropped: what replaced our own objects
    need not bring them back."""
    steps = [parse_statement(sql, dialect) for sql in statements]
    kept = dict(enumerate(steps))
    for first, made in enumerate(steps):
        for later in range(first + 1, len(steps)):
            if later in kept and undoes(steps[later], made):
                del kept[first], kept[later]
                break
    return [statements[number] for number in kept]


def undoes(step: Step, made: Step) -> bool:
    """True for a step that drops what the other one makes."""
    if isinstance(made, CreateIndex) and isinstance(step, DropIndex):
        return made.index.name.casefold() == step.name.casefold()
    if isinstance(made, AddColumn) and isinstance(step, DropColumn):
        dropped = (step.table.casefold(), step.column.casefold())
        return (made.table.casefold(), made.column.name.casefold()) == dropped
    return False


def select_rollback_statements(
    schema: Schema, records: Mapping[str, Record], tables: Sequence[str]
) -> list[str]:
    """The recorded statements that still have something to undo, tried on the schema.

    Raises PlanError if other objects depend on what would be dropped, with all of them.
    """
    statements, used = [], []
    recorded = [
        (table, parse_statement(sql, schema.dialect))
        for table in tables
        for sql in records.get(table, Record()).down
    ]
    created = fold(step.name for _, step in recorded if isinstance(step, DropChangeStream))
    for table, undo in recorded:
        for step in leave_others_watched(undo, schema, table, created):
            sql = render_step(step, schema.dialect)
            dependents = dict.fromkeys(list_dependents(step, schema))
            if dependents:
                used.append(f"{name_dropped(step)} is used by {', '.join(dependents)}")
            try:
                after = apply_step(schema, step)
            except NameNotFoundError:
                continue  # it was never added, or is already dropped
            except SchemaError:
                if not dependents:
                    raise
                continue
            if after != schema:
                statements.append(sql)
            schema = after
    if used:
        raise PlanError(
            f"cannot roll back: {'; '.join(used)}. Drop or change what uses them first; nothing was"
            " changed"
        )
    return statements


def leave_others_watched(
    step: Step, schema: Schema, table: str, created: Collection[str]
) -> tuple[Step, ...]:
    """What undoes a step now. A change stream that was made, or extended, for one table may watch
    others since: it only loses this one, and is dropped without any, if it is among the
    ``created`` ones."""
    if isinstance(step, DropChangeStream):
        name = step.name
    elif isinstance(step, AlterChangeStream) and "watches" in step.changes:
        name = step.change_stream.name
    else:
        return (step,)
    stream = schema.change_stream(name)
    if stream is None or stream.for_all:
        return ()
    others = tuple(each for each in stream.watches if not same_name(each.table, table))
    if not others and name.casefold() in created:
        return (DropChangeStream(stream.name),)
    return (AlterChangeStream(replace(stream, watches=others), frozenset({"watches"})),)


def delete_records(database: Database, tables: Sequence[str], schema: Schema) -> None:
    """Deletes the records of tables, and with the last one the table of records."""
    with database.batch() as batch:
        batch.delete(TABLE, KeySet(keys=[[table] for table in tables]))
    if not read_records(database, schema):
        database.update_ddl([render_step(DropTable(TABLE), schema.dialect)]).result(600)

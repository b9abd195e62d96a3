"""Placements: their names and partitions, placement keys, and what keeps a placement alive."""

from __future__ import annotations

from collections.abc import Callable, Collection

import apsw

from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import failed_precondition, invalid_argument, not_found
from emulator.limits import PLACEMENTS_MAX
from emulator.storage.sqlite import current_table
from emulator.values.sqlite_text import quote_name
from spanner_schema.model import steps
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Column, Schema, Table
from spanner_schema.syntax import placements

ALTER = "ALTER PLACEMENT"
ALTER_KEY = "ALTER PLACEMENT KEY"
ROUTING_OPTION = "per_placement_routing_metadata"

InstancePartitions = Callable[[], Collection[str]]
"""The ids of the partitions that the database's instance has."""


def check_placements(change: SchemaChange) -> None:
    """Checks what a statement says of placements and placement keys, apart from rows."""
    step = change.step
    if isinstance(step, steps.OtherStatement) and step.kind == ALTER:
        refuse_alteration(change.before, step.text)
    if isinstance(step, steps.OtherStatement) and step.kind == ALTER_KEY:
        raise failed_precondition(
            "Cannot add or drop the placement key of a table that exists: create the table again."
        )
    if isinstance(step, steps.AlterDatabase) and ROUTING_OPTION in dict(step.options):
        check_routing_option(change.before, dict(step.options)[ROUTING_OPTION])
    if len(placements.read_placements(change.after)) > PLACEMENTS_MAX:
        raise failed_precondition(
            f"Cannot add Placement: the limit is {PLACEMENTS_MAX} per database."
        )
    for before, table in change.tables():
        check_placement_keys(before, table)


def refuse_alteration(schema: Schema, text: str) -> None:
    """Spanner: a placement cannot be altered."""
    name, optional = placements.read_altered_placement(text)
    if placements.find_placement(schema, name) is not None:
        raise failed_precondition(
            f"Placement {name} cannot be altered: create a new placement, update the placement key "
            "of its rows with partitioned DML, and drop the old one."
        )
    if not optional:
        raise not_found(f"Placement not found: {name}")


def check_routing_option(schema: Schema, value: str | None) -> None:
    """Where routing metadata is kept is chosen before there are placements."""
    if (value or "true").casefold() not in {"true", "false"}:
        raise invalid_argument(
            f"Unexpected value for option: {ROUTING_OPTION}. Supported option values are booleans"
            " and NULL."
        )
    if placements.read_placements(schema):
        raise failed_precondition(
            f"The option {ROUTING_OPTION} cannot be set because the database has placements."
        )


def check_placement_keys(before: Table | None, table: Table) -> None:
    """The placement key of a table is there from its beginning to its end."""
    keys = [column for column in table.columns if column.placement_key]
    if before is not None:
        refuse_other_key(before, table)
    if not keys:
        return
    if len(keys) > 1:
        raise invalid_argument(f"Table {table.name} has more than one placement key column.")
    check_key_column(table, keys[0])
    if table.interleave is not None:
        raise invalid_argument(
            f"Table {table.name} is interleaved in {table.interleave.parent} and cannot have a"
            " placement key: its rows are in the placement of their parents."
        )
    if "." in table.name:
        raise failed_precondition(
            f"Table {table.name} cannot have a placement key because it is in a named schema."
        )


def check_key_column(table: Table, column: Column) -> None:
    """Spanner: STRING(MAX) NOT NULL PLACEMENT KEY."""
    place = f"{table.name}.{column.name}"
    if column.type.code is not TypeCode.STRING:
        raise invalid_argument(
            f"Placement key column {place} must be of type STRING, but it is"
            f" {column.type.code.value}."
        )
    if not column.not_null:
        raise invalid_argument(f"Placement key column {place} must be NOT NULL.")
    if column.generated is not None:
        raise invalid_argument(f"Placement key column {place} cannot be a generated column.")


def refuse_other_key(before: Table, table: Table) -> None:
    """A placement key is neither added to a table that exists nor dropped from it."""
    old, new = before.placement_key, table.placement_key
    if old is None and new is not None:
        raise failed_precondition(
            f"Cannot add placement key column {table.name}.{new.name} to a table that exists."
        )
    if old is not None and (new is None or not same_name(old.name, new.name)):
        raise failed_precondition(f"Cannot drop placement key column {table.name}.{old.name}.")


def refuse_unknown_partition(before: Schema, step: steps.Step, known: InstancePartitions) -> None:
    """A new placement is in an instance partition that exists."""
    if (
        isinstance(step, steps.CreateVerbatim)
        and step.item.kind == placements.KIND
        and placements.find_placement(before, step.item.name) is None
    ):
        partition = placements.read_placement(step.item.text).instance_partition
        if partition not in known():
            raise not_found(
                f"Instance partition not found: {partition}. Create it in the instance before the"
                " placement."
            )


def refuse_used_placements(connection: apsw.Connection, step: steps.Step, schema: Schema) -> None:
    """A placement with rows is not dropped, nor a placement table with rows. ``schema`` is the one
    before the statement."""
    if isinstance(step, steps.DropVerbatim) and step.kind == placements.KIND:
        dropped = placements.find_placement(schema, step.name)
        for table in schema.tables if dropped is not None else ():
            key = table.placement_key
            if dropped is not None and key is not None:
                condition = f" WHERE {quote_name(key.name)} = ?"
                if has_rows(connection, table, condition, (dropped.name,)):
                    raise failed_precondition(
                        f"Placement {dropped.name} can't be dropped because it is in use by"
                        f" placement table {table.name}."
                    )
    if isinstance(step, steps.DropTable):
        table_dropped = schema.table(step.name)
        if (
            table_dropped is not None
            and table_dropped.placement_key is not None
            and has_rows(connection, table_dropped)
        ):
            raise failed_precondition(
                f"Cannot drop placement table {table_dropped.name} because it has rows. Delete all"
                " its rows first."
            )


def has_rows(
    connection: apsw.Connection, table: Table, condition: str = "", bindings: tuple[str, ...] = ()
) -> bool:
    """Whether a table has a row, or one that fulfils a condition."""
    sql = f"SELECT 1 FROM {current_table(table.name)}{condition} LIMIT 1"
    return connection.execute(sql, bindings).fetchone() is not None

"""Foreign keys: what they may refer to, and what may not change under them."""

from __future__ import annotations

from collections.abc import Iterator

from ddl.rules.refusals import name_type
from emulator.catalog.managed_indexes import managed_indexes
from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import failed_precondition, not_found
from spanner_schema.model import steps
from spanner_schema.model.column_types import COLUMN_TYPES, TypeCode
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Column, ForeignKey, Schema, Table


def check_foreign_keys(change: SchemaChange) -> None:
    """Checks new foreign keys, and every change of what existing ones use."""
    for old, table in change.tables():
        known = {key.label for key in old.foreign_keys} if old is not None else set()
        for key in table.foreign_keys:
            if key.label not in known:
                check_foreign_key(change.after, table, key)
    refuse_drop_of_referenced_table(change)
    for table, column in change.dropped_columns():
        refuse_if_used(
            change.before,
            table,
            column,
            f"Cannot drop column `{column.name}` from table `{table.name}`.",
            " You must drop the foreign keys before dropping the column.",
        )
    for table, old_column, _, column in change.altered_columns():
        refuse_alteration(change.before, table, old_column, column)


def check_foreign_key(schema: Schema, table: Table, key: ForeignKey) -> None:
    """Checks one foreign key by itself."""
    target = schema.table(key.referenced_table)
    if target is None:
        raise not_found(f"Table not found: {key.referenced_table}")
    sides = [(table, key.columns), (target, key.referenced_columns)]
    resolved = [[find_column(side, name, key) for name in names] for side, names in sides]
    if len(key.columns) != len(key.referenced_columns):
        raise failed_precondition(
            f"The number of columns are different for table `{table.name}` and table"
            f" `{target.name}` in foreign key `{key.label}`."
        )
    for (side, _), columns in zip(sides, resolved, strict=True):
        check_side(side, columns, key)
    for mine, theirs in zip(*resolved, strict=True):
        if name_type(mine.type) != name_type(theirs.type):
            raise failed_precondition(
                f"The column types are different for column `{mine.name}` of table `{table.name}`"
                f" and column `{theirs.name}` of table `{target.name}` in foreign key"
                f" `{key.label}`."
            )


def find_column(table: Table, name: str, key: ForeignKey) -> Column:
    """A column that a foreign key names."""
    column = table.column(name)
    if column is None:
        raise failed_precondition(
            f"Column `{name}` not found for table `{table.name}` in foreign key `{key.label}`."
        )
    return column


def check_side(table: Table, columns: list[Column], key: ForeignKey) -> None:
    """Checks one side of a foreign key: each column once, and fit to be a key."""
    seen: set[str] = set()
    for column in columns:
        if column.name.casefold() in seen:
            raise failed_precondition(
                f"Column `{column.name}` used more than once for table `{table.name}` in foreign"
                f" key `{key.label}`."
            )
        seen.add(column.name.casefold())
        if column.type.code is TypeCode.PROTO or not COLUMN_TYPES[column.type.code].key:
            raise failed_precondition(
                f"Column `{column.name}` for foreign key `{key.label}` on table `{table.name}` has"
                " an unsupported type."
            )
        if column.allow_commit_timestamp:
            raise failed_precondition(
                f"Commit timestamp column is not supported for column `{column.name}` of table"
                f" `{table.name}` in foreign key `{key.label}`."
            )


def refuse_drop_of_referenced_table(change: SchemaChange) -> None:
    """A table goes after the foreign keys of other tables that refer to it."""
    if not isinstance(change.step, steps.DropTable):
        return
    labels = [
        key.label
        for table in change.after.tables
        for key in table.foreign_keys
        if same_name(key.referenced_table, change.step.name)
    ]
    if labels:
        raise failed_precondition(
            f"Cannot drop table `{change.step.name}`. It is referenced by one or more foreign keys:"
            f" {quote_all(labels)}. You must drop the foreign keys before dropping the table."
        )


def refuse_alteration(schema: Schema, table: Table, old: Column, new: Column) -> None:
    """Type, nullability and the commit timestamp of a column are fixed while it is in a key."""
    place = f"column `{old.name}` of table `{table.name}`."
    if name_type(old.type) != name_type(new.type):
        refuse_if_used(schema, table, old, f"Cannot change the type for {place}")
    if old.not_null != new.not_null:
        refuse_if_used(schema, table, old, f"Cannot change the nullability for {place}")
    if new.allow_commit_timestamp and not old.allow_commit_timestamp:
        refuse_if_used(schema, table, old, f"Cannot set the commit_timestamp option for {place}")


def refuse_if_used(
    schema: Schema, table: Table, column: Column, message: str, advice: str = ""
) -> None:
    """Raises if a foreign key has this column on one of its sides."""
    labels = list(keys_with_column(schema, table, column))
    if labels:
        raise failed_precondition(
            f"{message} It is used by one or more foreign keys: {quote_all(labels)}.{advice}"
        )


def keys_with_column(schema: Schema, table: Table, column: Column) -> Iterator[str]:
    """The names of the foreign keys that use a column."""
    for other in schema.tables:
        for key in other.foreign_keys:
            mine = key.columns if other is table else ()
            theirs = key.referenced_columns if same_name(key.referenced_table, table.name) else ()
            if any(same_name(name, column.name) for name in (*mine, *theirs)):
                yield key.label


def quote_all(names: list[str]) -> str:
    """Names in backticks, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)


def refuse_drop_of_managed_index(schema: Schema, name: str) -> None:
    """Raises for the name of an index that Spanner keeps for foreign keys."""
    labels = [
        key.label
        for table in schema.tables
        for key in table.foreign_keys
        if any(same_name(name, index.name) for _, index in managed_indexes(schema, table, key))
    ]
    if labels:
        raise failed_precondition(
            f"Cannot drop index `{name}`. It is in use by foreign keys: {quote_all(labels)}."
        )

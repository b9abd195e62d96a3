"""Columns: what a definition may say, and what may change in it later."""

from __future__ import annotations

from ddl.rules.refusals import is_in_primary_key, name_type
from ddl.rules.table_changes import COLUMN_OPTIONS, COMMIT_OPTION
from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import failed_precondition, invalid_argument
from emulator.sql.compile import compile_expression
from emulator.values.served_types import LENGTHS_MAX
from emulator.values.types import FLOATS
from spanner_schema.model import steps
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import require_table, same_name
from spanner_schema.model.schema import Column, Index, Table


def check_columns(change: SchemaChange) -> None:
    """Checks new and changed columns."""
    for before, table in change.tables():
        for column in table.columns:
            if before is None or before.column(column.name) is not column:
                check_definition(table, column)
                refuse_unknown_kind(change, table, column)
    for table, column in change.dropped_columns():
        refuse_drop_of_policy_column(table, column)
    for old_table, old, table, column in change.altered_columns():
        check_alteration(change, old_table, old, column)
        if is_in_primary_key(table, column) and old.not_null != column.not_null:
            refuse_change_in_family(change, table, column)
            raise invalid_argument(f"Cannot change key column {table.name}.{column.name}.")
    refuse_redefinition_of_shared_key(change)


def check_definition(table: Table, column: Column) -> None:
    """Checks a column by itself: lengths, options, vectors."""
    path = f"{table.name}.{column.name}"
    check_length(column.type, path)
    options = dict(column.options)
    for name in options:
        if name not in COLUMN_OPTIONS:
            raise invalid_argument(f"Option: {name} is unknown.")
    if COMMIT_OPTION in options:
        if column.type.code is not TypeCode.TIMESTAMP:
            raise failed_precondition(
                f"Column {path} has invalid allow_commit_timestamp option. Option only allowed on"
                " TIMESTAMP columns."
            )
        if options[COMMIT_OPTION].lower() != "false":
            raise invalid_argument(
                f"Unexpected value for option: {COMMIT_OPTION}. Supported option values are true,"
                " false, and null."
            )
    element = column.type.element
    if column.type.vector_length is not None and (element is None or element.code not in FLOATS):
        raise invalid_argument(
            "`vector_length` can only be applied on ARRAY<FLOAT32>or ARRAY<FLOAT64>, but it is"
            f" applied on {path}."
        )
    if element is not None and element.element is not None:
        raise invalid_argument(f"Column {path}: arrays of arrays are not supported.")
    computed = column.default is not None or (column.generated is not None and not column.stored)
    if column.type.vector_length is not None and computed:
        raise invalid_argument(
            "`vector_length` cannot be applied on generated column or default column,but it is"
            f" applied on {path}."
        )
    if TypeCode.INTERVAL in (column.type.code, element and element.code):
        raise failed_precondition(f"Column {path}: INTERVAL cannot be a column type.")


def refuse_unknown_kind(change: SchemaChange, table: Table, column: Column) -> None:
    """An IDENTITY has a kind, or the database has one for all of them; its values are INT64."""
    if column.identity is not None and column.type.code is not TypeCode.INT64:
        raise invalid_argument(
            f"Error parsing the default value of column `{table.name}`.`{column.name}`: Expected"
            f" type {name_type(column.type)}; found INT64"
        )
    default = "default_sequence_kind" in change.after.options
    if column.identity is not None and column.identity.default_kind and not default:
        raise invalid_argument(
            f"The sequence kind of an identity column {column.name} is not specified. Please"
            " specify the sequence kind explicitly or set the database option"
            " `default_sequence_kind`."
        )


def check_length(type_: Type, path: str) -> None:
    """The length of a STRING or BYTES, or of an array's elements."""
    if type_.element is not None:
        check_length(type_.element, path)
    limit = LENGTHS_MAX.get(type_.code)
    if limit is not None and type_.length is not None and not 1 <= type_.length <= limit:
        raise invalid_argument(
            f"Bad length for column {path}: {type_.length} : Allowed length range: [1, {limit}]."
        )


def refuse_drop_of_policy_column(table: Table, column: Column) -> None:
    """The column of a row deletion policy stays."""
    policy = table.row_deletion_policy
    if policy is not None and same_name(policy.column, column.name):
        raise policy_will_break(table, column)


def policy_will_break(table: Table, column: Column) -> Exception:
    """The refusal of a change under a row deletion policy."""
    return invalid_argument(
        f"ROW DELETION POLICY will break if drop/alter column named {column.name} in table"
        f" {table.name}. Row Deletion Policy must be set on column of type TIMESTAMP."
    )


def check_alteration(change: SchemaChange, table: Table, old: Column, new: Column) -> None:
    """Checks what may change in a column."""
    if old.identity is not None and new.default is not None:
        raise invalid_argument(
            f"Cannot alter an identity column `{table.name}.{new.name}` to a generated or default"
            " column."
        )
    retyped = name_type(old.type) != name_type(new.type)
    check_generated_alteration(table, old, new, retyped=retyped)
    if retyped:
        policy = table.row_deletion_policy
        if policy is not None and same_name(policy.column, new.name):
            raise policy_will_break(table, new)
        refuse_type_change_under_generated(change, table, old)
    if old.type.vector_length != new.type.vector_length:
        verb = "remove" if new.type.vector_length is None else "add"
        raise failed_precondition(f"Cannot change column {new.name} to {verb} `vector_length`")
    if old.not_null != new.not_null:
        for index in change.after.indexes_of(table.name):
            refuse_change_under_index(index, new)


def check_generated_alteration(table: Table, old: Column, new: Column, *, retyped: bool) -> None:
    """A generated column is generated for ever, and in the same way."""
    path = f"`{table.name}.{new.name}`"
    if new.generated is not None and old.generated is None:
        raise invalid_argument(f"Cannot convert column {path} to a generated column.")
    if old.generated is None:
        return
    if new.generated is None:
        raise invalid_argument(f"Cannot convert generated column {path} to a regular column.")
    if retyped:
        raise invalid_argument(f"Cannot change the data type of a stored generated column {path}.")
    if new.generated != old.generated:
        raise invalid_argument(
            f"Cannot change the expression of a generated column {path} because it is stored or"
            " has other dependencies."
        )
    if new.stored != old.stored:
        raise invalid_argument(f"Cannot change the STORED attribute for generated column {path}.")


def refuse_type_change_under_generated(change: SchemaChange, table: Table, column: Column) -> None:
    """A column of which another is generated keeps its type."""
    for other in table.columns:
        if other.generated is None:
            continue
        names = compile_expression(other.generated, table, change.before).columns
        if column.name in names:
            raise failed_precondition(
                f"Cannot change the data type of column `{column.name}`, which has a dependent"
                " stored generated column."
            )


def refuse_change_under_index(index: Index, column: Column) -> None:
    """The nullability of a column in the key of an index is fixed, unless the index has no NULLs
    of it."""
    in_key = any(same_name(part.column, column.name) for part in index.parts)
    filtered = index.null_filtered or any(
        same_name(name, column.name) for name in index.where_not_null
    )
    if in_key and not filtered:
        raise failed_precondition(
            f"Changing NOT NULL constraints on column {column.name} is not allowed because it"
            f" affects index {index.name}."
        )


def refuse_redefinition_of_shared_key(change: SchemaChange) -> None:
    """A key column that a parent and a child share is not defined again; its commit-timestamp
    option alone may change."""
    step = change.step
    if isinstance(step, steps.AlterColumn):
        name = step.column.name
    elif isinstance(step, steps.SetDefault | steps.SetOnUpdate | steps.SetNotNull | steps.SetType):
        name = step.column
    else:
        return
    before = require_table(change.before, step.table).column(name)
    table = require_table(change.after, step.table)
    after = table.column(name)
    if before is None or after is None or not is_in_primary_key(table, after):
        return
    if before.allow_commit_timestamp == after.allow_commit_timestamp:
        refuse_change_in_family(change, table, after)


def refuse_change_in_family(change: SchemaChange, table: Table, column: Column) -> None:
    """Raises if the parent of a table, or a child, has a key column of this name."""
    path = f"{table.name}.{column.name}"
    parent = change.after.table(table.interleave.parent) if table.interleave is not None else None
    if parent is not None and parent.column(column.name) is not None:
        raise invalid_argument(f"Cannot alter parent key column {path}.")
    for child in change.after.tables:
        if child.interleave is not None and same_name(child.interleave.parent, table.name):
            shared = child.column(column.name)
            if shared is not None and is_in_primary_key(child, shared):
                raise invalid_argument(f"Requested change to key column {path} could not be made.")

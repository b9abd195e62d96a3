"""Tables among each other: interleaving, row deletion policies, and what keeps a table alive."""

from __future__ import annotations

from collections.abc import Iterator

from ddl.rules.refusals import check_interleave, name_type
from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import failed_precondition, invalid_argument, not_found, unimplemented
from spanner_schema.model import steps
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.names import require_column, require_table, same_name
from spanner_schema.model.schema import ForeignKey, Index, KeyPart, OnDelete, Schema, Table


def check_tables(change: SchemaChange) -> None:
    """Checks how new and changed tables go with the others."""
    refuse_drop_under_streams(change)
    check_stream_step(change)
    check_policy_step(change)
    check_interleave_step(change)
    for _, table in change.tables():
        if table.interleave is not None:
            check_interleave(change.after, table)
            refuse_other_nullability(change.after, table)
            refuse_no_action_under_policy(change.after, table)
    if any(True for _ in change.tables()):
        for table in change.after.tables:
            check_policy(change.after, table)
    if isinstance(change.step, steps.AlterIndexStoring):
        check_stored_column(change.before, change.step)
    if isinstance(change.step, steps.CreateIndex):
        check_index_parent(change.after, change.step.index)
        refuse_stored_keys(change.after, change.step.index)
        refuse_missing_filters(change.after, change.step.index)


def refuse_drop_under_streams(change: SchemaChange) -> None:
    """What a change stream names stays."""
    step = change.step
    if isinstance(step, steps.DropTable):
        names = [
            stream.name
            for stream in change.before.change_streams
            if any(same_name(watched.table, step.name) for watched in stream.watches)
        ]
        if names:
            raise failed_precondition(
                f"Cannot drop table {step.name}. Table {step.name} is tracked by {len(names)}"
                f" Change Stream: {','.join(names)}. Tables explicitly tracked by a Change Stream"
                " cannot be dropped. Please drop the Change Stream or modify its FOR clause to stop"
                " tracking the table explicitly before dropping the table."
            )
    for table, column in change.dropped_columns():
        names = [
            stream.name
            for stream in change.before.change_streams
            for watched in stream.watches
            if same_name(watched.table, table.name)
            and any(same_name(name, column.name) for name in watched.columns or ())
        ]
        if names:
            place = f"{table.name}.{column.name}"
            raise failed_precondition(
                f"Cannot drop column {place} . Column {place} is tracked by {len(names)} Change"
                f" Stream: {','.join(names)}. Columns explicitly tracked by a Change Stream cannot"
                " be dropped. Please alter the Change Stream to stop tracking the column before"
                " dropping the column."
            )


def check_stream_step(change: SchemaChange) -> None:
    """DROP FOR ALL is for a stream that watches something."""
    step = change.step
    if not isinstance(step, steps.AlterChangeStream) or "watches" not in step.changes:
        return
    old = change.before.change_stream(step.change_stream.name)
    drops = not step.change_stream.watches and not step.change_stream.for_all
    if drops and old is not None and not old.watches and not old.for_all:
        raise failed_precondition(
            "The ALTER CHANGE STREAM DROP FOR clause cannot be applied on Change Stream"
            f" {old.name}, because it does not have a FOR clause and it does not track any database"
            " object."
        )


def check_policy_step(change: SchemaChange) -> None:
    """ADD ROW DELETION POLICY is for a table without one."""
    step = change.step
    if isinstance(step, steps.SetRowDeletionPolicy) and step.policy is not None:
        old = require_table(change.before, step.table).row_deletion_policy
        if old is not None and not step.replaces:
            raise invalid_argument(
                "Cannot create ROW DELETION POLICY because there is already one on column named"
                f" {step.policy.column} in table {step.table}."
            )


def check_policy(schema: Schema, table: Table) -> None:
    """A policy is about a TIMESTAMP, and nothing keeps its rows from being deleted."""
    policy = table.row_deletion_policy
    if policy is None:
        return
    column = table.column(policy.column)
    if column is None:
        raise invalid_argument(
            "Cannot create ROW DELETION POLICY because there is no column named"
            f" {policy.column} in table {table.name}."
        )
    if column.type.code is not TypeCode.TIMESTAMP:
        raise invalid_argument(
            f"Cannot create ROW DELETION POLICY because column {policy.column} in table"
            f" {table.name} is not of type TIMESTAMP."
        )
    for descendant in list_descendants(schema, table):
        interleave = descendant.interleave
        if interleave is not None and is_no_action(descendant):
            raise invalid_argument(
                f"Cannot create row deletion policy on {table.name} because there is a descendant"
                f" Table {descendant.name} with ON DELETE NO ACTION."
            )
        for key in descendant.foreign_keys:
            if blocks_deletion(key) and has_policy_above(schema, key.referenced_table):
                raise policy_not_allowed(table, [key])
    keys = [key for key in keys_to(schema, table) if blocks_deletion(key)]
    if keys:
        raise policy_not_allowed(table, keys)


def policy_not_allowed(table: Table, keys: list[ForeignKey]) -> Exception:
    """The refusal of a policy for the sake of foreign keys."""
    return invalid_argument(
        f"Cannot add a row deletion policy to table `{table.name}`. It is referenced by one or more"
        f" foreign keys: `{','.join(key.label for key in keys)}`."
    )


def blocks_deletion(key: ForeignKey) -> bool:
    """Whether a foreign key can keep a referenced row from being deleted."""
    return key.enforced and key.on_delete is not OnDelete.CASCADE


def is_no_action(table: Table) -> bool:
    """Whether a table's rows keep their parents."""
    interleave = table.interleave
    return (
        interleave is not None
        and interleave.enforced
        and interleave.on_delete is OnDelete.NO_ACTION
    )


def keys_to(schema: Schema, table: Table) -> Iterator[ForeignKey]:
    """The foreign keys that refer to a table."""
    for other in schema.tables:
        for key in other.foreign_keys:
            if same_name(key.referenced_table, table.name):
                yield key


def list_descendants(schema: Schema, table: Table) -> Iterator[Table]:
    """The tables that a deletion in a table may reach: children and referencing tables, and
    theirs; each once."""
    seen: set[str] = set()
    waiting = [table]
    while waiting:
        current = waiting.pop()
        for other in schema.tables:
            parent = other.interleave.parent if other.interleave is not None else None
            names = [key.referenced_table for key in other.foreign_keys]
            names += [parent] if parent is not None else []
            reached = any(same_name(name, current.name) for name in names)
            if reached and other.name.casefold() not in seen:
                seen.add(other.name.casefold())
                waiting.append(other)
                yield other


def has_policy_above(schema: Schema, name: str) -> bool:
    """Whether a table, or one in which it is interleaved, has a policy."""
    table = schema.table(name)
    seen: set[str] = set()
    while table is not None and table.name.casefold() not in seen:
        if table.row_deletion_policy is not None:
            return True
        seen.add(table.name.casefold())
        table = schema.table(table.interleave.parent) if table.interleave is not None else None
    return False


def refuse_no_action_under_policy(schema: Schema, table: Table) -> None:
    """Children of a table with a policy go with their parents."""
    parent = schema.table(table.interleave.parent) if table.interleave is not None else None
    if parent is not None and parent.row_deletion_policy is not None and is_no_action(table):
        raise invalid_argument(
            f"Cannot create or alter table {table.name} with ON DELETE NO ACTION because there is a"
            f" row deletion policy on ancestor table {parent.name}."
        )


def refuse_other_nullability(schema: Schema, table: Table) -> None:
    """The key columns of a child are NOT NULL where its parent's are, and only there."""
    parent = schema.table(table.interleave.parent) if table.interleave is not None else None
    if parent is None:
        return
    for part in parent.primary_key:
        mine, theirs = table.column(part.column), parent.column(part.column)
        if mine is not None and theirs is not None and mine.not_null != theirs.not_null:
            words = {True: "not null", False: "nullable"}
            raise failed_precondition(
                f"Table {table.name} references parent key column {theirs.name} that is"
                f" {words[theirs.not_null]}, but child key is {words[mine.not_null]}."
            )


def refuse_stored_keys(schema: Schema, index: Index) -> None:
    """An index has the primary key of its table anyway."""
    table = schema.table(index.table)
    for part in table.primary_key if table is not None else ():
        if any(same_name(part.column, name) for name in index.storing):
            raise failed_precondition(
                f"Index {index.name} specifies stored column {part.column} which is a key of table"
                f" {index.table}."
            )


def refuse_missing_filters(schema: Schema, index: Index) -> None:
    """What WHERE ... IS NOT NULL names is in the index: a part of its key, or stored."""
    table = schema.table(index.table)
    keys = (*index.parts, *(table.primary_key if table is not None else ()))
    kept = {name.casefold() for name in (*(part.column for part in keys), *index.storing)}
    for name in index.where_not_null:
        if name.casefold() not in kept:
            raise invalid_argument(
                f"Index {index.name} filters on column {name}, which is neither a part of its key"
                " nor stored in it."
            )


def check_stored_column(schema: Schema, step: steps.AlterIndexStoring) -> None:
    """A stored column is added that the index does not have yet; one is dropped that it stores."""
    index = schema.index(step.index)
    table = schema.table(index.table) if index is not None else None
    if index is None or table is None:
        return
    if not step.add:
        if not any(same_name(name, step.column) for name in index.storing):
            raise not_found(f"Index {index.name} does not have stored column {step.column}.")
        return
    has = [part.column for part in (*index.parts, *table.primary_key)] + list(index.storing)
    if any(same_name(name, step.column) for name in has):
        raise failed_precondition(f"Column {step.column} is already existed in index {index.name}.")


def check_interleave_step(change: SchemaChange) -> None:
    """What ALTER TABLE may change in an interleaving."""
    step = change.step
    if isinstance(step, steps.SetOnDelete):
        interleave = require_table(change.before, step.table).interleave
        if interleave is not None and not interleave.enforced:
            raise invalid_argument(f"Cannot SET ON DELETE on an INTERLEAVE IN table {step.table}.")
    if isinstance(step, steps.SetInterleave):
        old = require_table(change.before, step.table).interleave
        if old is None:
            raise invalid_argument(f"Cannot change interleaving behavior of table {step.table}.")
        if not same_name(old.parent, step.interleave.parent):
            raise invalid_argument(f"Cannot change the interleaving table of table {step.table}.")
        cascades = step.interleave.on_delete is OnDelete.CASCADE
        if step.interleave.enforced and not old.enforced and cascades:
            raise unimplemented(
                f"Altering the table {step.table} from INTERLEAVE IN to INTERLEAVE IN PARENT ON"
                " DELETE CASCADE (migrate it to ON DELETE NO ACTION first)"
            )


def check_index_parent(schema: Schema, index: Index) -> None:
    """An index is interleaved in a table whose key its own begins with."""
    if index.interleave_in is None:
        return
    parent = schema.table(index.interleave_in)
    if parent is None:
        raise failed_precondition(
            f"Cannot interleave index {index.name} within nonexistent table {index.interleave_in}."
        )
    table = schema.table(index.table)
    if table is None:
        raise not_found(f"Table not found: {index.table}")
    own = {part.column.casefold() for part in index.parts}
    rest = tuple(part for part in table.primary_key if part.column.casefold() not in own)
    parts = (*index.parts, *rest)
    names = [part.column.casefold() for part in parts[: len(parent.primary_key)]]
    remote = names != [part.column.casefold() for part in parent.primary_key]
    if len(index.parts if remote else parts) < len(parent.primary_key):
        raise failed_precondition(
            f"Index {index.name} specifies keys that are not a prefix of the keys of table"
            f" {parent.name}, yet is to be interleaved in {parent.name}."
        )
    for part, parent_part in zip(parts, parent.primary_key, strict=False):
        check_index_key_part(table, parent, index, part, parent_part)


def check_index_key_part(
    table: Table, parent: Table, index: Index, part: KeyPart, parent_part: KeyPart
) -> None:
    """A key part of an index has the order and the type of its parent's; names may differ."""
    where = f"Index {index.name} references parent key column {parent_part.column}"
    if part.descending != parent_part.descending:
        raise failed_precondition(
            f"{where} with incorrect order {'ASC' if part.descending else 'DESC'}."
        )
    mine = name_type(require_column(table, part.column).type)
    theirs = name_type(require_column(parent, parent_part.column).type)
    if mine != theirs:
        raise failed_precondition(f"{where} with incorrect type {mine} (should be {theirs}).")

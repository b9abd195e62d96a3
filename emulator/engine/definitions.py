"""Statements about objects that a schema keeps as text, and identities, as the step that they are
for the schema."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

from emulator.engine.proto_bundle import changes_bundle, resolve_bundle
from emulator.errors import failed_precondition, invalid_argument, unimplemented
from emulator.sql.property_graphs import complete_graph
from emulator.sql.sequences import identity_counter, sequence_counter
from spanner_schema.model import steps
from spanner_schema.model.errors import DuplicateNameError, NameNotFoundError, SchemaError
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Column, Dialect, Identity, Schema, Table, Verbatim, find
from spanner_schema.syntax import (
    functions,
    locality_groups,
    models,
    placements,
    search_indexes,
    sequences,
    vector_indexes,
    views,
)
from spanner_schema.syntax.property_graphs import KIND as PROPERTY_GRAPH
from spanner_schema.syntax.property_graphs import read_property_graph
from spanner_schema.syntax.protos import list_bundle_types

NEXTVAL = re.compile(r"\bnextval\s*\(\s*'\"?([^'\"]+)", re.IGNORECASE)
"""How the PostgreSQL dialect draws from a sequence."""
IF_NOT_EXISTS = re.compile(r"\bIF\s++NOT\s++EXISTS\s++", re.IGNORECASE)


def resolve_step(schema: Schema, step: steps.Step) -> steps.Step | None:
    """The step to apply; None if IF [NOT] EXISTS makes it a no-op. Raises SchemaError."""
    if changes_bundle(step):
        return resolve_bundle(schema, step)
    if isinstance(step, steps.CreateVerbatim):
        create = CREATED.get(step.item.kind)
        return create(schema, step.item) if create is not None else step
    if isinstance(step, steps.DropVerbatim) and step.kind == sequences.KIND:
        refuse_used_sequence(schema, step.name)
    if isinstance(step, steps.DropVerbatim) and step.kind == locality_groups.KIND:
        refuse_default_group(step.name)
    if isinstance(step, steps.OtherStatement) and step.kind in ALTERED:
        return ALTERED[step.kind](schema, step.text)
    if isinstance(step, steps.AlterIndexStoring):
        return alter_storing(schema, step)
    if isinstance(step, steps.AlterColumn):
        refuse_change_of_identity(schema, step)
    return step


def counters_to_restart(before: Schema, step: steps.Step) -> dict[str, int]:
    """The counters that a step restarts, with their new values."""
    if isinstance(step, steps.OtherStatement) and step.kind == "ALTER SEQUENCE":
        name, _ = sequences.read_altered_name(step.text, before.dialect)
        sequence = sequences.find_sequence(before, name)
        if sequence is not None:
            old = sequences.read_sequence(sequence.text, before.dialect)
            after = sequences.alter_sequence(old, step.text)
            if after.restarts and after.start_with_counter is not None:
                return {sequence_counter(sequence.name): after.start_with_counter}
    if isinstance(step, steps.OtherStatement) and step.kind == "ALTER IDENTITY":
        table, column, identity, restarts = identity_change(before, step.text)
        first = identity.start_counter
        if restarts and first is not None:
            return {identity_counter(table.name, column.name): first}
    return {}


def create_view(schema: Schema, item: Verbatim) -> steps.Step:
    """CREATE [OR REPLACE] VIEW."""
    view = views.read_view(item.text, schema.dialect)
    if view.security is None:
        raise invalid_argument(f"View `{view.name}` is missing the SQL SECURITY clause.")
    if not (view.replaces and views.find_view(schema, item.name)):
        refuse_taken_name(schema, item.name)
    return steps.CreateVerbatim(Verbatim(item.kind, item.name, view.text))


def create_sequence(schema: Schema, item: Verbatim) -> steps.Step | None:
    """CREATE SEQUENCE [IF NOT EXISTS]."""
    sequence = sequences.read_sequence(item.text, schema.dialect)
    if sequence.optional and sequences.find_sequence(schema, item.name) is not None:
        return None
    refuse_taken_name(schema, item.name)
    if sequence.kind is None and "default_sequence_kind" not in schema.options:
        raise invalid_argument(
            "The sequence does not have a valid sequence kind. Please specify the sequence "
            "kind explicitly or set the database option `default_sequence_kind`."
        )
    return steps.CreateVerbatim(Verbatim(item.kind, item.name, sequence.text))


def create_placement(schema: Schema, item: Verbatim) -> steps.Step | None:
    """CREATE PLACEMENT [IF NOT EXISTS]."""
    placement = placements.read_placement(item.text)
    if placement.optional and placements.find_placement(schema, item.name) is not None:
        return None
    if placement.name.casefold() == placements.DEFAULT:
        raise DuplicateNameError("Placement", item.name)
    refuse_taken_name(schema, item.name)
    return steps.CreateVerbatim(Verbatim(item.kind, item.name, placement.text))


def create_vector_index(schema: Schema, item: Verbatim) -> steps.Step | None:
    """CREATE VECTOR INDEX [IF NOT EXISTS], in PostgreSQL CREATE INDEX ... USING scann."""
    index = vector_indexes.read_vector_index(item.text, schema.dialect)
    if index.optional and find_kept(schema, item.kind, item.name) is not None:
        return None
    refuse_taken_name(schema, item.name)
    text = IF_NOT_EXISTS.sub("", item.text, count=1) if index.optional else item.text
    if schema.dialect is Dialect.POSTGRESQL:
        text = index.text
    return steps.CreateVerbatim(Verbatim(item.kind, item.name, text))


def alter_vector_index(schema: Schema, text: str) -> steps.Step:
    """ALTER VECTOR INDEX as a new CREATE VECTOR INDEX."""
    name = vector_indexes.read_altered_name(text)
    item = find_kept(schema, vector_indexes.KIND, name)
    if item is None:
        raise NameNotFoundError("Index", name)
    before = vector_indexes.read_vector_index(item.text)
    return steps.CreateVerbatim(
        replace(item, text=vector_indexes.alter_vector_index(before, text).text)
    )


def alter_storing(schema: Schema, step: steps.AlterIndexStoring) -> steps.Step:
    """ALTER INDEX ADD | DROP a stored column, in PostgreSQL also of a vector index."""
    item = find_kept(schema, vector_indexes.KIND, step.index)
    if item is None or schema.dialect is not Dialect.POSTGRESQL:
        return step
    before = vector_indexes.read_vector_index(item.text, schema.dialect)
    after = vector_indexes.store_column(before, step.column, adds=step.add)
    return steps.CreateVerbatim(replace(item, text=after.text))


def create_search_index(schema: Schema, item: Verbatim) -> steps.Step:
    """CREATE SEARCH INDEX."""
    index = search_indexes.read_search_index(item.text, schema.dialect)
    refuse_taken_name(schema, item.name)
    return steps.CreateVerbatim(Verbatim(item.kind, item.name, index.text))


def create_locality_group(schema: Schema, item: Verbatim) -> steps.Step | None:
    """CREATE LOCALITY GROUP [IF NOT EXISTS]."""
    group = locality_groups.read_locality_group(item.text, schema.dialect)
    if same_name(group.name, locality_groups.DEFAULT):
        raise failed_precondition("Default locality group cannot be created.")
    if find_kept(schema, item.kind, item.name) is not None:
        if group.optional:
            return None
        raise DuplicateNameError("Object", item.name)
    return steps.CreateVerbatim(replace(item, text=replace(group, optional=False).text))


def refuse_default_group(name: str) -> None:
    """The group of what names none stays."""
    if same_name(name, locality_groups.DEFAULT):
        raise failed_precondition("Default locality group cannot be dropped.")


def alter_locality_group(schema: Schema, text: str) -> steps.Step | None:
    """ALTER LOCALITY GROUP [IF EXISTS] as a new definition of the group."""
    change = locality_groups.read_locality_group(text, schema.dialect)
    item = find_kept(schema, locality_groups.KIND, change.name)
    if item is None and same_name(change.name, locality_groups.DEFAULT):
        before = locality_groups.LocalityGroup(locality_groups.DEFAULT, dialect=schema.dialect)
    elif item is not None:
        before = locality_groups.read_locality_group(item.text, schema.dialect)
    elif change.optional:
        return None
    else:
        raise NameNotFoundError("Locality group", change.name)
    if not change.options:
        raise failed_precondition("Alter Locality Group must have options.")
    after = locality_groups.alter_locality_group(before, change)
    return steps.CreateVerbatim(Verbatim(locality_groups.KIND, before.name, after.text))


def create_property_graph(schema: Schema, item: Verbatim) -> steps.Step | None:
    """CREATE [OR REPLACE] PROPERTY GRAPH [IF NOT EXISTS], with everything written out."""
    graph = read_property_graph(item.text)
    exists = find_kept(schema, item.kind, item.name) is not None
    if graph.optional and exists:
        return None
    if not (graph.replaces and exists):
        refuse_taken_name(schema, item.name)
    return steps.CreateVerbatim(replace(item, text=complete_graph(schema, graph).text))


def create_model(schema: Schema, item: Verbatim) -> steps.Step | None:
    """CREATE [OR REPLACE] MODEL [IF NOT EXISTS]."""
    model = models.read_model(item.text)
    exists = find_kept(schema, item.kind, item.name) is not None
    if model.optional and exists:
        return None
    if not (model.replaces and exists):
        refuse_taken_name(schema, item.name)
    return steps.CreateVerbatim(replace(item, text=model.text))


def alter_model(schema: Schema, text: str) -> steps.Step | None:
    """ALTER MODEL [IF EXISTS] as a new CREATE MODEL."""
    change = models.read_model(text)
    item = find_kept(schema, models.KIND, change.name)
    if item is not None:
        after = models.alter_model(models.read_model(item.text), change)
        return steps.CreateVerbatim(replace(item, text=after.text))
    if change.optional:
        return None
    raise NameNotFoundError("Model", change.name)


def create_function(schema: Schema, item: Verbatim) -> steps.Step:
    """CREATE [OR REPLACE] FUNCTION."""
    function = functions.read_function(item.text, list_bundle_types(schema))
    if function.body is None:
        raise unimplemented(f"The remote function {item.name}")
    if function.security == "DEFINER":
        raise invalid_argument(
            f"Function `{item.name}` uses unsupported SQL SECURITY DEFINER clause."
        )
    if not (function.replaces and functions.find_function(schema, item.name) is not None):
        refuse_taken_name(schema, item.name)
    return steps.CreateVerbatim(replace(item, text=function.text))


def alter_search_index(schema: Schema, text: str) -> steps.Step:
    """ALTER SEARCH INDEX as a new CREATE SEARCH INDEX."""
    name = search_indexes.read_altered_name(text, schema.dialect)
    item = find_kept(schema, search_indexes.KIND, name)
    if item is None:
        raise NameNotFoundError("Index", name)
    before = search_indexes.read_search_index(item.text, schema.dialect)
    after = search_indexes.alter_search_index(before, text)
    return steps.CreateVerbatim(replace(item, text=after.text))


def find_kept(schema: Schema, kind: str, name: str) -> Verbatim | None:
    """The object of this kind and name that the schema keeps as text."""
    return find(tuple(item for item in schema.verbatim if item.kind == kind), name)


def refuse_taken_name(schema: Schema, name: str) -> None:
    """Raises if another object of the schema has this name."""
    folded = name.casefold()
    taken = [each.name for each in schema.tables] + [each.name for each in schema.indexes]
    taken += [each.name for each in schema.change_streams]
    taken += [each.name for each in schema.verbatim if each.kind != "ROLE"]
    if any(each.casefold() == folded for each in taken):
        raise DuplicateNameError("Object", name)


def alter_sequence(schema: Schema, text: str) -> steps.Step | None:
    """ALTER SEQUENCE as a new CREATE SEQUENCE."""
    name, optional = sequences.read_altered_name(text, schema.dialect)
    sequence = sequences.find_sequence(schema, name)
    if sequence is None:
        if optional:
            return None
        raise NameNotFoundError("Sequence", name)
    before = sequences.read_sequence(sequence.text, schema.dialect)
    after = sequences.alter_sequence(before, text)
    return steps.CreateVerbatim(Verbatim(sequence.kind, sequence.name, after.text))


def refuse_used_sequence(schema: Schema, name: str) -> None:
    """A sequence from which a default draws cannot be dropped."""
    for table in schema.tables:
        for column in table.columns:
            if column.default and name.casefold() in drawn_sequences(column.default):
                raise SchemaError(
                    f"Cannot drop SEQUENCE `{name}` on which there is a dependent column: "
                    f"{table.name}.{column.name}."
                )


def drawn_sequences(expression: str) -> set[str]:
    """The sequences, in lower case, from which an expression draws, in either dialect."""
    named = {name.casefold() for name in NEXTVAL.findall(expression)}
    return named | sequences.find_sequence_names(expression)


def identity_change(schema: Schema, text: str) -> tuple[Table, Column, Identity, bool]:
    """What ALTER IDENTITY changes, to what, and whether the counter restarts."""
    table_name, column_name = sequences.read_identity_column(text, schema.dialect)
    table = schema.table(table_name)
    if table is None:
        raise NameNotFoundError("Table", table_name)
    column = table.column(column_name)
    if column is None:
        raise NameNotFoundError("Column", column_name, table_name)
    if column.identity is None:
        raise invalid_argument(
            f"Column is not an identity column in table {table.name}: {column.name}"
        )
    return table, column, *sequences.alter_identity(column.identity, text, schema.dialect)


def alter_identity(schema: Schema, text: str) -> steps.Step:
    """ALTER IDENTITY as a new definition of the column."""
    table, column, identity, _ = identity_change(schema, text)
    return steps.AlterColumn(table.name, replace(column, identity=identity))


def refuse_change_of_identity(schema: Schema, step: steps.AlterColumn) -> None:
    """A column is an identity from its beginning to its end."""
    table = schema.table(step.table)
    column = table.column(step.column.name) if table is not None else None
    if table is None or column is None:
        return
    where = f"`{table.name}.{column.name}`"
    if column.identity is None and step.column.identity is not None:
        raise invalid_argument(f"Cannot alter column {where} to an identity column.")
    if column.identity is not None and step.column.identity is None:
        if step.column.default is not None or step.column.generated is not None:
            raise invalid_argument(
                f"Cannot alter an identity column {where} to a generated or default column."
            )
        raise invalid_argument(f"Cannot alter column {where} to drop the identity property.")


CREATED: Mapping[str, Callable[[Schema, Verbatim], steps.Step | None]] = {
    views.KIND: create_view,
    sequences.KIND: create_sequence,
    placements.KIND: create_placement,
    vector_indexes.KIND: create_vector_index,
    search_indexes.KIND: create_search_index,
    PROPERTY_GRAPH: create_property_graph,
    locality_groups.KIND: create_locality_group,
    models.KIND: create_model,
    functions.KIND: create_function,
}
"""What becomes of CREATE of an object that is kept as text; others are as they are."""
ALTERED: Mapping[str, Callable[[Schema, str], steps.Step | None]] = {
    "ALTER SEQUENCE": alter_sequence,
    "ALTER IDENTITY": alter_identity,
    search_indexes.ALTER: alter_search_index,
    vector_indexes.ALTER: alter_vector_index,
    locality_groups.ALTER: alter_locality_group,
    models.ALTER: alter_model,
}
"""What becomes of ALTER of such an object, and of an identity."""

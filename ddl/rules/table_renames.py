"""Other names for tables: whatever refers to a table follows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ddl.rules.dispatch import apply_by_type, reverse_by_type
from ddl.rules.table_changes import replace_table
from spanner_schema.model import steps
from spanner_schema.model.errors import InvalidDefinitionError, SchemaError
from spanner_schema.model.names import check_name_is_free, require_table, same_name
from spanner_schema.model.schema import ChangeStream, Dialect, Schema, Table, Verbatim
from spanner_schema.model.steps import Step
from spanner_schema.syntax import property_graphs, search_indexes, vector_indexes


@apply_by_type.register
def rename_tables(step: steps.RenameTables, schema: Schema) -> Schema:
    """RENAME TABLE: whatever refers to a table has its new name, but for views."""
    for old, new in step.renames:
        table = require_table(schema, old)
        check_name_is_free(schema, new)
        if table.interleave is not None and table.column(new) is not None:
            raise SchemaError(
                f"Cannot rename table {table.name} to {new}: it has a column of that name and is"
                " interleaved."
            )
        schema = rename_table(schema, table.name, new)
    if step.synonym is not None:
        schema = add_synonym(steps.AddSynonym(step.renames[-1][1], step.synonym), schema)
    return schema


@reverse_by_type.register
def reverse_rename_tables(step: steps.RenameTables, before: Schema) -> tuple[Step, ...]:
    renames = steps.RenameTables(tuple((new, old) for old, new in reversed(step.renames)))
    if step.synonym is None:
        return (renames,)
    return (steps.DropSynonym(step.renames[-1][1], step.synonym), renames)


@apply_by_type.register
def add_synonym(step: steps.AddSynonym, schema: Schema) -> Schema:
    """ADD SYNONYM: a table has one at most."""
    table = require_table(schema, step.table)
    if table.synonyms:
        raise InvalidDefinitionError(
            f"Cannot add a synonym to table {table.name} because the table already has a synonym"
            f" {table.synonyms[0]}."
        )
    check_name_is_free(schema, step.synonym)
    return replace_table(schema, replace(table, synonyms=(step.synonym,)))


@reverse_by_type.register
def reverse_add_synonym(step: steps.AddSynonym, before: Schema) -> tuple[Step, ...]:
    return (steps.DropSynonym(step.table, step.synonym),)


@apply_by_type.register
def drop_synonym(step: steps.DropSynonym, schema: Schema) -> Schema:
    """DROP SYNONYM."""
    table = require_table(schema, step.table)
    if not any(same_name(each, step.synonym) for each in table.synonyms):
        raise InvalidDefinitionError(
            f"SYNONYM {step.synonym} does not exist on table {table.name}."
        )
    return replace_table(schema, replace(table, synonyms=()))


@reverse_by_type.register
def reverse_drop_synonym(step: steps.DropSynonym, before: Schema) -> tuple[Step, ...]:
    return (steps.AddSynonym(step.table, step.synonym),)


def rename_table(schema: Schema, old: str, new: str) -> Schema:
    """The schema with another name for a table."""

    def rename(name: str) -> str:
        return new if same_name(name, old) else name

    def rename_in(table: Table) -> Table:
        parent, keys = table.interleave, table.foreign_keys
        return replace(
            table,
            name=rename(table.name),
            interleave=parent and replace(parent, parent=rename(parent.parent)),
            foreign_keys=tuple(
                replace(key, referenced_table=rename(key.referenced_table)) for key in keys
            ),
        )

    def watches(stream: ChangeStream) -> ChangeStream:
        watched = (replace(each, table=rename(each.table)) for each in stream.watches)
        return replace(stream, watches=tuple(watched))

    return replace(
        schema,
        tables=tuple(map(rename_in, schema.tables)),
        indexes=tuple(
            replace(
                each,
                table=rename(each.table),
                interleave_in=each.interleave_in and rename(each.interleave_in),
            )
            for each in schema.indexes
        ),
        change_streams=tuple(map(watches, schema.change_streams)),
        grants=tuple(
            replace(each, name=rename(each.name)) if each.kind == "TABLE" else each
            for each in schema.grants
        ),
        verbatim=tuple(rename_in_text(each, rename, schema.dialect) for each in schema.verbatim),
    )


def rename_in_text(item: Verbatim, rename: Callable[[str], str], dialect: Dialect) -> Verbatim:
    """An index or a graph that is kept as text, with other names of tables; other objects as they
    are."""
    if item.kind == vector_indexes.KIND:
        vectors = vector_indexes.read_vector_index(item.text, dialect)
        renamed = replace(vectors, table=rename(vectors.table))
        return item if renamed == vectors else replace(item, text=renamed.text)
    if item.kind == search_indexes.KIND:
        tokens = search_indexes.read_search_index(item.text, dialect)
        parent = tokens.interleave_in and rename(tokens.interleave_in)
        return replace(
            item, text=replace(tokens, table=rename(tokens.table), interleave_in=parent).text
        )
    if item.kind == property_graphs.KIND:
        graph = property_graphs.read_property_graph(item.text)
        nodes, edges = (
            tuple(replace(each, table=rename(each.table)) for each in elements)
            for elements in (graph.nodes, graph.edges)
        )
        return replace(item, text=replace(graph, nodes=nodes, edges=edges).text)
    return item

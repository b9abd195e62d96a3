"""Vector indexes: of which columns they may be, and what they keep from being dropped."""

from __future__ import annotations

from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import failed_precondition, invalid_argument, not_found
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Column, Schema, Table
from spanner_schema.model.steps import CreateVerbatim, DropTable
from spanner_schema.syntax.vector_indexes import (
    KIND,
    VectorIndex,
    list_vector_indexes,
    read_vector_index,
)

DISTANCE_OPTION = "distance_type"
DISTANCES = {"COSINE", "EUCLIDEAN", "DOT_PRODUCT"}
OPTIONS = {DISTANCE_OPTION, "tree_depth", "num_leaves", "num_branches", "leaf_scatter_factor"}
OPTIONS |= {"min_branch_splits", "min_leaf_splits", "locality_group", "disable_search"}
TREE_DEPTHS = {"2", "3"}


def check_vector_indexes(change: SchemaChange) -> None:
    """Checks a new vector index, and that the columns of the others stay."""
    step = change.step
    if isinstance(step, CreateVerbatim) and step.item.kind == KIND:
        check_index(change.after, read_vector_index(step.item.text, change.after.dialect))
    if isinstance(step, DropTable) or any(True for _ in change.tables()):
        for index in list_vector_indexes(change.after):
            refuse_drops(change, index)


def check_index(schema: Schema, index: VectorIndex) -> None:
    """Raises for a vector index that Spanner refuses."""
    table = schema.table(index.table)
    if table is None:
        raise not_found(f"Table not found: {index.table}")
    columns = [find_column(table, name) for name in (*index.columns, *index.storing)]
    check_embedding(index, columns[0])
    options = dict(index.options)
    for name in options.keys() - OPTIONS:
        raise invalid_argument(f"Option: {name} is unknown.")
    refuse_repetitions(index)
    distance = options.get(DISTANCE_OPTION, "").strip("'\"")
    if distance not in DISTANCES:
        raise invalid_argument(
            f"Vector index {index.name} needs the option {DISTANCE_OPTION}, one of"
            f" {', '.join(sorted(DISTANCES))}."
        )
    if options.get("tree_depth", "2") not in TREE_DEPTHS:
        raise invalid_argument(f"The option tree_depth of {index.name} must be 2 or 3.")


def refuse_repetitions(index: VectorIndex) -> None:
    """No column is stored twice, or stored though it is a key."""
    stored = [name.casefold() for name in index.storing]
    keys = {name.casefold() for name in index.columns}
    for name in index.storing:
        if name.casefold() in keys:
            raise invalid_argument(
                f"Index {index.name} specifies stored column {name} already specified as primary"
                " key."
            )
        if stored.count(name.casefold()) > 1:
            raise invalid_argument(f"Index {index.name} specifies stored column {name} twice.")


def check_embedding(index: VectorIndex, column: Column) -> None:
    """The first column holds vectors of one length, and NULL is excluded."""
    element = column.type.element
    floats = {TypeCode.FLOAT32, TypeCode.FLOAT64}
    if element is None or element.code not in floats or column.type.vector_length is None:
        raise invalid_argument(
            f"Vector index {index.name} needs a column of ARRAY<FLOAT32> or ARRAY<FLOAT64> with"
            f" vector_length first: {column.name} is another one."
        )
    excluded = index.not_null is not None and same_name(index.not_null, column.name)
    if index.not_null is not None and not excluded:
        raise invalid_argument(
            f"The WHERE of vector index {index.name} must name {column.name}: {column.name} IS NOT"
            " NULL."
        )
    if not column.not_null and not excluded:
        raise invalid_argument(
            f"Vector index {index.name} needs WHERE {column.name} IS NOT NULL, as {column.name} may"
            " be NULL."
        )


def find_column(table: Table, name: str) -> Column:
    """A column of the table of an index."""
    column = table.column(name)
    if column is None:
        raise not_found(f"Column not found in table {table.name}: {name}")
    return column


def refuse_drops(change: SchemaChange, index: VectorIndex) -> None:
    """A table and its columns stay as long as a vector index needs them."""
    table = change.after.table(index.table)
    if table is None:
        raise failed_precondition(f"Cannot drop table {index.table} with indices: {index.name}.")
    embedding = table.column(index.columns[0])
    if embedding is not None:
        check_embedding(index, embedding)
    for name in (*index.columns, *index.storing):
        if table.column(name) is None:
            raise failed_precondition(
                f"Cannot drop column {name} from table {table.name} because it is used by index"
                f" {index.name}."
            )

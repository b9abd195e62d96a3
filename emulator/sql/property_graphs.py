"""Property graphs as they are: every label with its properties, every key, and their types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ddl.rules.refusals import name_type
from emulator.errors import invalid_argument, not_found
from emulator.sql.compile import compile_expression, compile_statement
from emulator.sql.statements import CompiledQuery
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Column, Index, Schema, Table
from spanner_schema.syntax.googlesql.spelling import quote_part
from spanner_schema.syntax.property_graphs import (
    SPELLING,
    GraphElement,
    GraphLabel,
    GraphProperty,
    GraphReference,
    PropertyGraph,
)
from spanner_schema.syntax.views import find_view


@dataclass(frozen=True, slots=True)
class GraphTypes:
    """The types of the properties of a graph, by their names, and the properties of its labels."""

    properties: dict[str, Type]
    labels: dict[str, tuple[str, ...]]


def complete_graph(schema: Schema, graph: PropertyGraph) -> PropertyGraph:
    """The graph with everything written out that a statement may leave to be understood. Raises
    SpannerError for what does not exist."""
    nodes = tuple(complete_element(schema, graph, each) for each in graph.nodes)
    keys = {node.name.casefold(): node.key for node in nodes}
    edges = tuple(
        complete_ends(complete_element(schema, graph, each), keys) for each in graph.edges
    )
    return replace(graph, nodes=nodes, edges=edges, replaces=False, optional=False)


def complete_element(schema: Schema, graph: PropertyGraph, element: GraphElement) -> GraphElement:
    """An element with its key, and the names and properties of its labels."""
    table = find_element_table(schema, element)
    key = element.key or tuple(part.column for part in table.primary_key)
    if not key:
        raise invalid_argument(
            f"Graph element table `{element.name}` in property graph `{graph.name}` needs a KEY:"
            f" {table.name} has no primary key."
        )
    labels = tuple(
        GraphLabel(label.name or element.name, tuple(list_properties(table, label)))
        for label in element.labels
    )
    return replace(element, key=key, labels=labels)


def complete_ends(edge: GraphElement, keys: dict[str, tuple[str, ...]]) -> GraphElement:
    """An edge whose ends say which columns of their nodes are meant."""

    def complete(end: GraphReference | None) -> GraphReference | None:
        if end is None or end.node_columns:
            return end
        return replace(end, node_columns=keys.get(end.node.casefold(), ()))

    return replace(edge, source=complete(edge.source), destination=complete(edge.destination))


def find_element_table(schema: Schema, element: GraphElement) -> Table:
    """The table of an element, or its view as a table without a key."""
    table = schema.table(element.table)
    if table is not None:
        return table
    view = find_view(schema, element.table)
    if view is None:
        raise not_found(f"Table not found: {element.table}")
    text = f"SELECT v.* FROM {SPELLING.quote_name(view.name)} AS v"
    query = compile_statement(text, schema, {}, read_nothing)
    assert isinstance(query, CompiledQuery)
    columns = tuple(Column(column.name, column.type) for column in query.columns)
    return Table(view.name, columns, ())


def read_nothing(table: Table, index: Index | None, alias: str) -> str:
    """A source of tables for a query that is compiled for its types."""
    return "(SELECT 1)"


def list_properties(table: Table, label: GraphLabel) -> Iterator[GraphProperty]:
    """The properties of a label, each with its name."""
    if label.properties is None:
        excluded = {name.casefold() for name in label.excluded}
        for name in label.excluded:
            find_element_column(table, name)
        for column in sorted(table.columns, key=lambda column: column.name):
            if column.name.casefold() not in excluded and not column.hidden:
                yield GraphProperty(quote_part(column.name), column.name)
        return
    for described in label.properties:
        if described.name is None:
            raise invalid_argument(
                f"The property {described.expression} must have a name: {described.expression} AS"
                " name."
            )
        yield described


def find_element_column(table: Table, name: str) -> Column:
    """A column of the table of an element."""
    column = table.column(name)
    if column is None:
        raise invalid_argument(f"Column not found in table {table.name}: {name}")
    return column


def type_graph(schema: Schema, graph: PropertyGraph) -> GraphTypes:
    """The types of a graph that is complete. Raises INVALID_ARGUMENT for what does not agree."""
    properties: dict[str, tuple[str, Type]] = {}
    labels: dict[str, tuple[str, tuple[str, ...]]] = {}
    for element in graph.elements:
        table = find_element_table(schema, element)
        for label in element.labels:
            for described in label.properties or ():
                type_ = compile_expression(described.expression, table, schema).type
                name = described.name or ""
                known = properties.setdefault(name.casefold(), (name, type_))
                if known[1] != type_:
                    raise invalid_argument(
                        f"The property `{name}` of property graph `{graph.name}` has types"
                        f" {name_type(known[1])} and {name_type(type_)}."
                    )
            add_label(graph, label, labels)
    return GraphTypes(dict(properties.values()), dict(labels.values()))


def add_label(
    graph: PropertyGraph, label: GraphLabel, labels: dict[str, tuple[str, tuple[str, ...]]]
) -> None:
    """Notes a label, which has the same properties wherever it is."""
    names = tuple(described.name or "" for described in label.properties or ())
    if len({name.casefold() for name in names}) < len(names):
        raise invalid_argument(
            f"Property Graph `{graph.name}` has duplicate property declaration name in label"
            f" `{label.name}`."
        )
    name = label.name or ""
    known = labels.setdefault(name.casefold(), (name, names))
    if {each.casefold() for each in known[1]} != {each.casefold() for each in names}:
        raise invalid_argument(
            f"The label `{name}` of property graph `{graph.name}` has other properties in another"
            " element table."
        )

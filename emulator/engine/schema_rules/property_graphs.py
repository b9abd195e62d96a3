"""Property graphs: what their elements need, and what they keep from being dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ddl.rules.refusals import name_type
from emulator.engine.schema_rules.change import SchemaChange
from emulator.errors import SpannerError, failed_precondition, invalid_argument
from emulator.sql.compile import compile_expression
from emulator.sql.property_graphs import find_element_column, find_element_table, type_graph
from spanner_schema.model import steps
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import Schema, Table
from spanner_schema.syntax.property_graphs import (
    KIND,
    GraphElement,
    GraphReference,
    PropertyGraph,
    list_property_graphs,
    read_property_graph,
)
from spanner_schema.syntax.views import KIND as VIEW


def check_property_graphs(change: SchemaChange) -> None:
    """Checks a graph that is new, and that the others stay as they are."""
    step = change.step
    if isinstance(step, steps.CreateVerbatim) and step.item.kind == KIND:
        check_graph(change.after, read_property_graph(step.item.text))
        return
    for graph in list_property_graphs(change.after):
        refuse_drop(change, graph)
        is_view = isinstance(step, steps.CreateVerbatim) and step.item.kind == VIEW
        if is_view or any(True for _ in change.tables()):
            refuse_alteration(change, graph)


def check_graph(schema: Schema, graph: PropertyGraph) -> None:
    """Raises for a graph that Spanner refuses."""
    refuse_repeated_elements(graph)
    for element in graph.elements:
        table = find_element_table(schema, element)
        for name in element.key:
            find_element_column(table, name)
        refuse_repeated_labels(graph, element)
        check_dynamic(table, element)
    for edge in graph.edges:
        for kind, end in (("source", edge.source), ("destination", edge.destination)):
            if end is not None:
                check_end(schema, graph, edge, kind, end)
    for kind, elements in (("node", graph.nodes), ("edge", graph.edges)):
        check_dynamic_labels(graph, kind, elements)
    type_graph(schema, graph)


def refuse_repeated_elements(graph: PropertyGraph) -> None:
    """Each element has a name of its own."""
    counts = Counter(element.name.casefold() for element in graph.elements)
    for element in graph.elements:
        if counts[element.name.casefold()] > 1:
            raise invalid_argument(
                f"Property Graph `{graph.name}` has duplicate element table name: {element.name}."
                " Give one an alias with AS."
            )


def refuse_repeated_labels(graph: PropertyGraph, element: GraphElement) -> None:
    """A label is once at an element."""
    names = [(label.name or "").casefold() for label in element.labels]
    for label in element.labels:
        if names.count((label.name or "").casefold()) > 1:
            raise invalid_argument(
                f"Property Graph `{graph.name}` has duplicate label name: {label.name}"
            )


def check_dynamic(table: Table, element: GraphElement) -> None:
    """A dynamic label is in a column of STRING, dynamic properties are in one of JSON."""
    for words, name, code in (
        ("DYNAMIC LABEL", element.dynamic_label, TypeCode.STRING),
        ("DYNAMIC PROPERTIES", element.dynamic_properties, TypeCode.JSON),
    ):
        if name is not None and find_element_column(table, name).type.code is not code:
            raise invalid_argument(
                f"{words} of element table {element.name} must hold expression of type {code.value}"
            )


def check_dynamic_labels(graph: PropertyGraph, kind: str, elements: Sequence[GraphElement]) -> None:
    """One node table and one edge table at most have a dynamic label, and are alone then."""
    dynamic = [element for element in elements if element.dynamic_label is not None]
    if len(dynamic) > 1:
        raise invalid_argument(
            f"Property Graph `{graph.name}` has multiple {kind} tables with dynamic label"
            " definition. You can have at most one dynamic label definition in either NODE or EDGE"
            " tables."
        )
    if dynamic and len(elements) > 1:
        raise invalid_argument(
            f"Property Graph `{graph.name}` has both dynamic label {kind} table and schema-defined"
            f" label {kind} table(s). You can only define one {kind} table in the graph statement"
            " when the table uses dynamic label."
        )


def check_end(
    schema: Schema, graph: PropertyGraph, edge: GraphElement, kind: str, end: GraphReference
) -> None:
    """An end of an edge names columns of a node, of the same types."""
    node = next((each for each in graph.nodes if same_name(each.name, end.node)), None)
    if node is None:
        raise invalid_argument(
            f"Graph edge table `{edge.name}` in property graph `{graph.name}` does not have {kind}"
            f" node table `{end.node}`."
        )
    if len(end.columns) != len(end.node_columns):
        raise invalid_argument(
            f"The {kind} key of graph edge table `{edge.name}` has {len(end.columns)} columns, but"
            f" it references {len(end.node_columns)} of `{node.name}`."
        )
    table, node_table = find_element_table(schema, edge), find_element_table(schema, node)
    for name, node_name in zip(end.columns, end.node_columns, strict=True):
        type_ = find_element_column(table, name).type
        node_type = find_element_column(node_table, node_name).type
        if name_type(type_) != name_type(node_type):
            raise invalid_argument(
                f"The {kind} key column {name} of graph edge table `{edge.name}` has type"
                f" {name_type(type_)}, but {node_name} of `{node.name}` has {name_type(node_type)}."
            )


def refuse_drop(change: SchemaChange, graph: PropertyGraph) -> None:
    """A table, a view or a column stays as long as a graph needs it."""
    step = change.step
    if isinstance(step, steps.DropTable | steps.DropVerbatim):
        is_view = isinstance(step, steps.DropVerbatim) and step.kind == VIEW
        used = any(same_name(element.table, step.name) for element in graph.elements)
        if used and (is_view or isinstance(step, steps.DropTable)):
            kind = "VIEW" if is_view else "TABLE"
            raise failed_precondition(
                f"Cannot drop {kind} `{step.name}` on which there are dependent property graphs:"
                f" {graph.name}."
            )
    for table, column in change.dropped_columns():
        for element in graph.elements:
            if same_name(element.table, table.name):
                used_columns = {n.casefold() for n in list_columns(change.before, graph, element)}
                if column.name.casefold() in used_columns:
                    raise failed_precondition(
                        f"Cannot drop column `{column.name}` of table `{table.name}` on which"
                        f" there are dependent property graphs: {graph.name}."
                    )


def list_columns(schema: Schema, graph: PropertyGraph, element: GraphElement) -> Iterator[str]:
    """The columns that an element needs of its table."""
    yield from element.key
    yield from (name for name in (element.dynamic_label, element.dynamic_properties) if name)
    for end in (element.source, element.destination):
        yield from end.columns if end is not None else ()
    for edge in graph.edges:
        for end in (edge.source, edge.destination):
            if end is not None and same_name(end.node, element.name):
                yield from end.node_columns
    table = find_element_table(schema, element)
    for label in element.labels:
        for described in label.properties or ():
            yield from compile_expression(described.expression, table, schema).columns


def refuse_alteration(change: SchemaChange, graph: PropertyGraph) -> None:
    """A change of a table leaves the graph valid."""
    try:
        check_graph(change.after, graph)
    except SpannerError as error:
        raise failed_precondition(
            f"The new definition causes the definition of PROPERTY GRAPH `{graph.name}` to become"
            f" invalid with the following diagnostic message: {error.message}"
        ) from error

"""The rows of INFORMATION_SCHEMA about property graphs, with their definitions as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator

from emulator.sql.property_graphs import GraphTypes, type_graph
from emulator.sql.types import name_of
from emulator.values.system_tables import Row
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.property_graphs import (
    GraphElement,
    GraphReference,
    PropertyGraph,
    list_property_graphs,
)

Description = dict[str, object]


def property_graph_rows(schema: Schema) -> Iterator[Row]:
    """The property graphs."""
    for graph in list_property_graphs(schema):
        described = describe_graph(graph, type_graph(schema, graph))
        yield "", *split_name(graph.name), json.dumps(described, separators=(",", ":"))


def describe_graph(graph: PropertyGraph, types: GraphTypes) -> Description:
    """A graph that is complete, as the documentation describes its JSON."""
    owner, name = split_name(graph.name)
    return {
        "catalog": "",
        "schema": owner,
        "name": name,
        "nodeTables": [describe_element(each, "NODE") for each in graph.nodes],
        "edgeTables": [describe_element(each, "EDGE") for each in graph.edges],
        "labels": [
            {"name": label, "propertyDeclarationNames": list(names)}
            for label, names in types.labels.items()
        ],
        "propertyDeclarations": [
            {"name": name, "type": name_of(type_)} for name, type_ in types.properties.items()
        ],
    }


def describe_element(element: GraphElement, kind: str) -> Description:
    """A node table or an edge table."""
    owner, table = split_name(element.table)
    expressions = {
        each.name or "": each.expression
        for label in element.labels
        for each in label.properties or ()
    }
    described: Description = {
        "name": element.name,
        "kind": kind,
        "baseCatalogName": "",
        "baseSchemaName": owner,
        "baseTableName": table,
        "keyColumns": list(element.key),
        "labelNames": [label.name for label in element.labels],
        "propertyDefinitions": [
            {"propertyDeclarationName": name, "valueExpressionSql": expression}
            for name, expression in expressions.items()
        ],
    }
    optional = {
        "dynamicLabelExpr": element.dynamic_label,
        "dynamicPropertyExpr": element.dynamic_properties,
        "sourceNodeTable": describe_end(element.source),
        "destinationNodeTable": describe_end(element.destination),
    }
    return described | {name: value for name, value in optional.items() if value is not None}


def describe_end(end: GraphReference | None) -> Description | None:
    """The node at an end of an edge."""
    if end is None:
        return None
    return {
        "nodeTableName": end.node,
        "edgeTableColumns": list(end.columns),
        "nodeTableColumns": list(end.node_columns),
    }

"""Property graphs: what CREATE PROPERTY GRAPH says. A schema keeps them as text."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from spanner_schema.model.names import split_name
from spanner_schema.model.schema import Schema
from spanner_schema.syntax.clauses import Options
from spanner_schema.syntax.googlesql.parts import read_options
from spanner_schema.syntax.googlesql.spelling import GoogleSqlSpelling, quote_part
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import TokenKind

KIND = "PROPERTY GRAPH"
SPELLING = GoogleSqlSpelling()


@dataclass(frozen=True, slots=True)
class GraphProperty:
    """A property; ``name`` None is missing: a column has its own."""

    expression: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class GraphLabel:
    """A label, called as its element where ``name`` is None. ``properties`` None are all columns
    but those that are ``excluded``."""

    name: str | None = None
    properties: tuple[GraphProperty, ...] | None = None
    excluded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphReference:
    """The node at an end of an edge; ``node_columns`` empty are the key of the node."""

    columns: tuple[str, ...]
    node: str
    node_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GraphElement:
    """The nodes, or edges, that are the rows of a table or a view. ``key`` empty is the primary
    key; an edge has a source and a destination."""

    table: str
    name: str
    key: tuple[str, ...] = ()
    source: GraphReference | None = None
    destination: GraphReference | None = None
    labels: tuple[GraphLabel, ...] = ()
    dynamic_label: str | None = None
    dynamic_properties: str | None = None


@dataclass(frozen=True, slots=True)
class PropertyGraph:
    """A property graph; ``replaces`` says OR REPLACE, ``optional`` IF NOT EXISTS."""

    name: str
    nodes: tuple[GraphElement, ...]
    edges: tuple[GraphElement, ...] = ()
    options: Options = ()
    replaces: bool = False
    optional: bool = False

    @property
    def elements(self) -> tuple[GraphElement, ...]:
        """Nodes and edges."""
        return (*self.nodes, *self.edges)

    @property
    def text(self) -> str:
        """The statement that creates the graph, as Spanner tells it."""
        text = f"CREATE PROPERTY GRAPH {SPELLING.quote_name(self.name)}"
        if self.options:
            pairs = ", ".join(f"{name} = {value}" for name, value in self.options)
            text += f" OPTIONS ({pairs})"
        text += f"\n  NODE TABLES({','.join(map(write_element, self.nodes))}\n  )"
        if self.edges:
            text += f"\n  EDGE TABLES({','.join(map(write_element, self.edges))}\n  )"
        return text


def write_element(element: GraphElement) -> str:
    """One element, on lines of its own."""
    lines = [f"\n    {SPELLING.quote_name(element.table)}"]
    if element.name != split_name(element.table)[1]:
        lines[0] += f" AS {quote_part(element.name)}"
    if element.key:
        lines.append(f"KEY({SPELLING.quote_columns(element.key)})")
    for words, end in (("SOURCE", element.source), ("DESTINATION", element.destination)):
        if end is not None:
            columns = SPELLING.quote_columns(end.columns)
            node = f"({SPELLING.quote_columns(end.node_columns)})" if end.node_columns else ""
            lines.append(f"{words} KEY({columns}) REFERENCES {quote_part(end.node)}{node}")
    lines += map(write_label, element.labels)
    if element.dynamic_label is not None:
        lines.append(f"DYNAMIC LABEL({quote_part(element.dynamic_label)})")
    if element.dynamic_properties is not None:
        lines.append(f"DYNAMIC PROPERTIES({quote_part(element.dynamic_properties)})")
    return "\n      ".join(lines)


def write_label(label: GraphLabel) -> str:
    """A label with its properties."""
    text = "DEFAULT LABEL" if label.name is None else f"LABEL {quote_part(label.name)}"
    if label.properties is None:
        excluded = SPELLING.quote_columns(label.excluded)
        return f"{text} PROPERTIES ALL COLUMNS" + (f" EXCEPT ({excluded})" if excluded else "")
    if not label.properties:
        return f"{text} NO PROPERTIES"
    listed = ",\n        ".join(map(write_property, label.properties))
    return f"{text} PROPERTIES(\n        {listed})"


def write_property(described: GraphProperty) -> str:
    """An expression, and its name where that is another one."""
    if described.name is None or quote_part(described.name) == described.expression:
        return described.expression
    return f"{described.expression} AS {quote_part(described.name)}"


@lru_cache(maxsize=1_000)
def read_property_graph(text: str) -> PropertyGraph:
    """Reads a whole CREATE PROPERTY GRAPH statement. Raises DdlSyntaxError."""
    reader = TokenReader(text)
    reader.expect("CREATE")
    replaces = reader.accept("OR", "REPLACE")
    reader.expect("PROPERTY", "GRAPH")
    optional = reader.accept("IF", "NOT", "EXISTS")
    if replaces and optional:
        reader.fail("a name without IF NOT EXISTS, which excludes OR REPLACE")
    name = reader.read_path("a graph name")
    options = read_options(reader) if reader.peek("OPTIONS") else ()
    reader.expect("NODE", "TABLES")
    nodes = read_elements(reader, are_edges=False)
    edges = read_elements(reader, are_edges=True) if reader.accept("EDGE", "TABLES") else ()
    reader.accept(";")
    reader.expect_end()
    return PropertyGraph(name, nodes, edges, options, replaces, optional)


def read_elements(reader: TokenReader, *, are_edges: bool) -> tuple[GraphElement, ...]:
    """(element, ...); a comma may follow the last one."""
    reader.expect("(")
    elements: list[GraphElement] = []
    while not elements or not reader.accept(")"):
        elements.append(read_element(reader, is_edge=are_edges))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(elements)


def read_element(reader: TokenReader, *, is_edge: bool) -> GraphElement:
    """A table, its name in the graph, keys, labels and properties."""
    table = reader.read_path("a table name")
    name = reader.read_name() if reader.accept("AS") else split_name(table)[1]
    key = read_columns(reader) if reader.accept("KEY") else ()
    source = destination = None
    if is_edge:
        reader.expect("SOURCE", "KEY")
        source = read_reference(reader)
        reader.expect("DESTINATION", "KEY")
        destination = read_reference(reader)
    labels = read_labels(reader)
    dynamic_label = read_dynamic(reader) if reader.accept("DYNAMIC", "LABEL") else None
    dynamic_properties = read_dynamic(reader) if reader.accept("DYNAMIC", "PROPERTIES") else None
    return GraphElement(
        table, name, key, source, destination, labels, dynamic_label, dynamic_properties
    )


def read_columns(reader: TokenReader) -> tuple[str, ...]:
    """(a, b): one column at least."""
    names = reader.read_names()
    if not names:
        reader.fail("a column name")
    return names


def read_reference(reader: TokenReader) -> GraphReference:
    """(a, b) REFERENCES node [(c, d)]."""
    columns = read_columns(reader)
    reader.expect("REFERENCES")
    node = reader.read_name("the name of a node table")
    return GraphReference(columns, node, read_columns(reader) if reader.peek("(") else ())


def read_dynamic(reader: TokenReader) -> str:
    """(column)."""
    reader.expect("(")
    column = reader.read_name("a column name")
    reader.expect(")")
    return column


def read_labels(reader: TokenReader) -> tuple[GraphLabel, ...]:
    """Labels, each with its properties; properties alone are those of the default label, and
    nothing is that label with all columns."""
    labels: list[GraphLabel] = []
    while True:
        if reader.accept("DEFAULT", "LABEL"):
            labels.append(read_properties(reader, None))
        elif reader.accept("LABEL"):
            labels.append(read_properties(reader, reader.read_name("a label")))
        else:
            return tuple(labels) if labels else (read_properties(reader, None),)


def read_properties(reader: TokenReader, name: str | None) -> GraphLabel:
    """NO PROPERTIES | PROPERTIES [ARE] ALL COLUMNS [EXCEPT (...)] | PROPERTIES (...), or nothing,
    which is all columns."""
    if reader.accept("NO", "PROPERTIES"):
        return GraphLabel(name, ())
    if not reader.accept("PROPERTIES"):
        return GraphLabel(name)
    if reader.peek("("):
        return GraphLabel(name, read_property_list(reader))
    reader.accept("ARE")
    reader.expect("ALL", "COLUMNS")
    return GraphLabel(name, excluded=read_columns(reader) if reader.accept("EXCEPT") else ())


def read_property_list(reader: TokenReader) -> tuple[GraphProperty, ...]:
    """(expression [AS name], ...)."""
    reader.expect("(")
    properties: list[GraphProperty] = []
    while not properties or not reader.accept(")"):
        first = reader.token
        expression = read_property_expression(reader)
        is_name = first.kind in {TokenKind.WORD, TokenKind.QUOTED} and first.text == expression
        name = first.value if is_name else None
        name = reader.read_name() if reader.accept("AS") else name
        properties.append(GraphProperty(expression, name))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(properties)


def read_property_expression(reader: TokenReader) -> str:
    """An expression up to the comma, AS or parenthesis behind it."""
    start = end = reader.token.start
    depth = 0
    while depth or not (reader.peek(",") or reader.peek(")") or reader.peek("AS")):
        token = reader.advance()
        if token.kind is TokenKind.END:
            reader.fail("')'")
        if token.kind is TokenKind.SYMBOL:
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(token.text, 0)
        end = token.end
    if end == start:
        reader.fail("an expression")
    return reader.text[start:end]


def list_property_graphs(schema: Schema) -> list[PropertyGraph]:
    """Those of a schema."""
    return [read_property_graph(item.text) for item in schema.verbatim if item.kind == KIND]

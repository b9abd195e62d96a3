"""Arrays, structs and messages, their parts; CASE, CAST, EXTRACT, INTERVAL, WITH; subqueries."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.googlesql.trees import (
    Maker,
    Trees,
    identifier,
    is_plain,
    make,
    make_all,
    names_of,
)
from emulator.sql.googlesql.type_trees import array_type, data_type, struct_type
from emulator.sql.grammar.nodes import Leaf, Node, spell_path
from emulator.sql.parsed import NEW_FUNCTION, TYPED_CONSTRUCTOR, WITH_FUNCTION

POSITIONS: dict[str, dict[str, object]] = {
    "OFFSET": {"offset": 0},
    "ORDINAL": {"offset": 1},
    "SAFE_OFFSET": {"offset": 0, "safe": True},
    "SAFE_ORDINAL": {"offset": 1, "safe": True},
}


def array(trees: Trees, node: Node) -> exp.Expr:
    """[a, b], ARRAY[a, b], ARRAY<T>[a, b]"""
    made = exp.Array(expressions=make_all(trees, node))
    written = node.node("array_type")
    return made if written is None else construct(made, array_type(written))


def struct(trees: Trees, node: Node) -> exp.Expr:
    """(a, b), STRUCT(a AS x, b), STRUCT<T, U>(a, b)"""
    if node.has("expression"):
        return exp.Tuple(expressions=make_all(trees, node))
    made = exp.Struct(expressions=[struct_item(trees, each) for each in node.nodes("struct_item")])
    written = node.node("struct_type")
    if written is None or not written.has("struct_field"):
        return made
    return construct(made, struct_type(written))


def struct_item(trees: Trees, node: Node) -> exp.Expr:
    """A field, with a name or without."""
    made = make(trees, node)
    name = node.find("identifier")
    return made if name is None else exp.PropertyEQ(this=identifier(name), expression=made)


def construct(made: exp.Expr, type_: exp.DataType) -> exp.Cast:
    """A value whose parts become of the types that stand before it."""
    cast = exp.Cast(this=made, to=type_)
    cast.meta[TYPED_CONSTRUCTOR] = True
    return cast


def operand(trees: Trees, node: Node) -> exp.Expr:
    """ARRAY(SELECT ...)"""
    subquery = node.node("_subquery")
    if subquery is None:
        raise errors.unimplemented("A form of this statement")
    return exp.Array(expressions=[trees.query(subquery)])


def subquery(trees: Trees, node: Node) -> exp.Expr:
    """(SELECT ...)"""
    return exp.Subquery(this=trees.query(node))


def exists(trees: Trees, node: Node) -> exp.Expr:
    """EXISTS(SELECT ...)"""
    return exp.Exists(this=trees.query(node.inner("_subquery")))


def field(trees: Trees, node: Node) -> exp.Expr:
    """x.name"""
    return exp.Dot(
        this=trees.expression(node.parts[0][1]), expression=identifier(node.get("identifier"))
    )


def subscript(trees: Trees, node: Node) -> exp.Expr:
    """x[n], x[OFFSET(n)]"""
    index = node.get("expression")
    given: list[exp.Expr] = []
    named: dict[str, object] = {}
    if isinstance(index, Node) and index.rule == "call":
        callee, arguments = index.parts[0][1], index.nodes("argument")
        name = callee.text.upper() if isinstance(callee, Leaf) else ""
        if name in POSITIONS and len(arguments) == 1:
            named, given = POSITIONS[name], make_all(trees, arguments[0])
    if not given:
        given = [trees.expression(index)]
    return exp.Bracket(this=trees.expression(node.parts[0][1]), expressions=given, **named)


def case(trees: Trees, node: Node) -> exp.Expr:
    """CASE with an operand or without one."""
    whens = [make_all(trees, each) for each in node.nodes("case_when")]
    made = exp.Case(ifs=[exp.If(this=test, true=value) for test, value in whens])
    outside = node.parts[1]
    if outside[0] == "expression":
        made.set("this", trees.expression(outside[1]))
    if node.has("ELSE"):
        made.set("default", trees.expression(node.parts[-2][1]))
    return made


def cast(trees: Trees, node: Node) -> exp.Expr:
    """CAST, SAFE_CAST"""
    kind = exp.Cast if node.has("CAST") else exp.TryCast
    made = kind(this=make(trees, node), to=data_type(node.inner("type")))
    form = node.node("format")
    if form is not None:
        text, *zone = make_all(trees, form)
        made.set("format", exp.AtTimeZone(this=text, zone=zone[0]) if zone else text)
    return made


def extract(trees: Trees, node: Node) -> exp.Expr:
    """EXTRACT(part FROM x AT TIME ZONE z)"""
    part, *rest = node.trees("expression")
    source, *zone = [trees.expression(each) for each in rest]
    if zone:
        source = exp.AtTimeZone(this=source, zone=zone[0])
    if isinstance(part, Leaf):
        return exp.Extract(this=exp.Var(this=part.text), expression=source)
    return exp.Extract(this=trees.expression(part), expression=source)


def interval(trees: Trees, node: Node) -> exp.Expr:
    """INTERVAL x part [TO part]"""
    parts = [exp.Var(this=identifier(each).name) for each in node.trees("identifier")]
    unit: exp.Expr = parts[0]
    if len(parts) > 1:
        unit = exp.IntervalSpan(this=parts[0], expression=parts[1])
    return exp.Interval(this=make(trees, node), unit=unit)


def with_expression(trees: Trees, node: Node) -> exp.Expr:
    """WITH(a AS 1, a + 1)"""
    arguments: list[exp.Expr] = []
    for each in node.nodes("with_variable"):
        name = exp.Var(this=identifier(each.get("identifier")).name)
        arguments.append(exp.Kwarg(this=name, expression=make(trees, each)))
    return exp.Anonymous(this=WITH_FUNCTION, expressions=[*arguments, make(trees, node)])


def new(trees: Trees, node: Node) -> exp.Expr:
    """NEW a.B(1 AS c)"""
    name = exp.Literal.string(spell_path(node.parts[1][1]))
    fields = [new_item(trees, each) for each in node.nodes("new_item")]
    return exp.Anonymous(this=NEW_FUNCTION, expressions=[name, *fields])


def new_item(trees: Trees, node: Node) -> exp.Expr:
    """A field of a message: its value and its name."""
    if node.has("extension"):
        raise errors.unimplemented("An extension in NEW")
    name = node.find("identifier")
    made = make(trees, node)
    return made if name is None else exp.Alias(this=made, alias=identifier(name))


def replace_fields(trees: Trees, node: Node) -> exp.Expr:
    """REPLACE_FIELDS(m, 1 AS a.b): the path is one name, `a.b`."""
    fields: list[exp.Expr] = []
    for each in node.nodes("replace_field"):
        path = each.parts[-1][1]
        if not is_plain(path):
            raise errors.unimplemented("An extension or an element in REPLACE_FIELDS")
        name = exp.Identifier(this=".".join(part.name for part in names_of(path)))
        fields.append(exp.Alias(this=make(trees, each), alias=name))
    return exp.Anonymous(this="REPLACE_FIELDS", expressions=[make(trees, node), *fields])


MAKERS: dict[str, Maker] = {
    "array": array,
    "struct": struct,
    "_value_operand": operand,
    "_subquery": subquery,
    "exists": exists,
    "field": field,
    "subscript": subscript,
    "case": case,
    "cast": cast,
    "extract": extract,
    "interval": interval,
    "with_expression": with_expression,
    "new": new,
    "replace_fields": replace_fields,
}

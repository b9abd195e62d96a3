"""Expressions of libpg_query's trees -> trees that the compiler knows.

What both dialects have is the same node; every other function is a call by name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from emulator import errors
from emulator.sql.aggregates import AGGREGATE_CALLS
from emulator.sql.ordering import NAN_GREATEST
from emulator.sql.postgres.nodes import Node
from emulator.sql.postgres.operator_trees import KINDS, call
from emulator.sql.postgres.type_names import BY_NAME, name_column, read_type, show_type
from emulator.sql.window_functions import WINDOW_FUNCTIONS
from spanner_schema.model.column_types import Type

TYPE = "postgres_type"
"""Key in ``Cast.meta``: the type, and its modifiers."""
WRITTEN = "postgres_written_type"
"""Key in ``Cast.meta``: the name of the type, as statements tell it."""
FILTER = "postgres_filter"
"""Key in the ``meta`` of an aggregate call: its FILTER."""
POSTGRES_AGGREGATES = {
    **{name: name for name in ("COUNT", "SUM", "AVG", "MIN", "MAX", "STRING_AGG", "ARRAY_AGG")},
    "BOOL_AND": "LOGICAL_AND",
    "EVERY": "LOGICAL_AND",
    "BOOL_OR": "LOGICAL_OR",
    "BIT_AND": "BIT_AND",
    "BIT_OR": "BIT_OR",
}
"""The aggregates that there are, and what the compiler calls them."""

QUANTIFIED = {
    "ANY_SUBLINK": ("=", "ANY/SOME subqueries with non-equality operators are not supported"),
    "ALL_SUBLINK": ("<>", "ALL subqueries with operators other than <>/!= are not supported"),
}
"""The one operator of each kind of subquery, and what Spanner says of the others."""
SLICE_ENDS = {"lidx": "1", "uidx": str(2**31 - 1)}
BARE_FUNCTIONS = {
    "SVFOP_CURRENT_TIMESTAMP": "current_timestamp",
    "SVFOP_CURRENT_DATE": "current_date",
    "SVFOP_CURRENT_SCHEMA": "current_schema",
}
BOOLEAN_TESTS = {
    "IS_TRUE": "IS TRUE",
    "IS_NOT_TRUE": "IS NOT TRUE",
    "IS_FALSE": "IS FALSE",
    "IS_NOT_FALSE": "IS NOT FALSE",
    "IS_UNKNOWN": "IS UNKNOWN",
    "IS_NOT_UNKNOWN": "IS NOT UNKNOWN",
}
Query = Callable[[Node], exp.Expr]


class ExpressionTrees:
    """Makes trees of expressions; ``query`` makes those of the queries inside."""

    def __init__(self, query: Query) -> None:
        self._query = query

    def expression(self, node: Node) -> exp.Expr:
        """Any expression. Raises UNIMPLEMENTED, by its name, for what is not supported."""
        make = NODES.get(node.kind)
        if make is None:
            raise errors.unimplemented(f"The expression {node.kind}")
        tree = make(self, node)
        node.finish()
        return tree

    def expressions(self, nodes: list[Node]) -> list[exp.Expr]:
        """Several of them."""
        return [self.expression(each) for each in nodes]

    def target(self, node: Node) -> exp.Expr:
        """An item of a SELECT list, under the name that PostgreSQL gives its column."""
        value = node.node("val")
        name = node.text("name")
        tree = self.expression(value)
        node.finish()
        if isinstance(tree, exp.Star) or isinstance(tree.this, exp.Star):
            return tree
        alias = name or name_of(value, tree)
        if isinstance(tree, exp.Column) and tree.name == alias:
            return tree
        return exp.Alias(this=tree, alias=exp.to_identifier(alias, quoted=True))

    def sort_keys(self, nodes: list[Node]) -> list[exp.Ordered]:
        """The keys of ORDER BY: NULLs come last upwards, first downwards."""
        return [self._sort_key(each) for each in nodes]

    def _sort_key(self, node: Node) -> exp.Ordered:
        direction = node.text("sortby_dir")
        if direction == "SORTBY_USING":
            raise errors.unimplemented("ORDER BY ... USING")
        down = direction == "SORTBY_DESC"
        nulls = node.text("sortby_nulls")
        first = nulls == "SORTBY_NULLS_FIRST" or (nulls != "SORTBY_NULLS_LAST" and down)
        key = exp.Ordered(this=self.expression(node.node("node")), desc=down, nulls_first=first)
        key.meta[NAN_GREATEST] = True
        node.finish()
        return key

    def _make_column_ref(self, node: Node) -> exp.Expr:
        parts = node.nodes("fields")
        if parts[-1].kind == "A_Star":
            names = [str(each.get("sval")) for each in parts[:-1]]
            names = names[names[:1] == ["public"] and len(names) > 1 :]
            if not names:
                return exp.Star()
            return exp.Column(this=exp.Star(), **qualifiers(names))
        names = [str(each.get("sval")) for each in parts]
        if len(names) > 1 and names[0] == "public":
            names = names[1:]
        return exp.Column(this=exp.to_identifier(names[-1], quoted=True), **qualifiers(names[:-1]))

    def _make_param_ref(self, node: Node) -> exp.Expr:
        number = int(node.get("number") or 0)
        if number < 1:
            raise errors.invalid_argument("there is no parameter $0")
        return exp.Parameter(this=exp.Var(this=f"p{number}"))

    def _make_a_const(self, node: Node) -> exp.Expr:
        if node.get("isnull"):
            return exp.Null()
        if (boolean := node.part("boolval")) is not None:
            return exp.Boolean(this=bool(boolean.get("boolval")))
        if (integer := node.part("ival")) is not None:
            return exp.Literal.number(str(integer.get("ival") or 0))
        if (number := node.part("fval")) is not None:
            return number_literal(number.text("fval"))
        if (text := node.part("sval")) is not None:
            return exp.Literal.string(text.text("sval"))
        raise errors.unimplemented("A bit string")

    def _make_type_cast(self, node: Node) -> exp.Expr:
        named = node.part("typeName", "TypeName")
        assert named is not None
        written = named.names("names")[-1]
        type_, modifiers = read_type(named)
        return cast(self.expression(node.node("arg")), type_, modifiers, written)

    def _make_type_function(self, node: Node, name: str) -> exp.Expr:
        """A type's name that is called like a function: a cast."""
        (argument,) = node.nodes("args")
        node.ignore("funcformat")
        return cast(self.expression(argument), BY_NAME[name], (), name)

    def _make_bool_expr(self, node: Node) -> exp.Expr:
        operator = node.text("boolop")
        operands = self.expressions(node.nodes("args"))
        if operator == "NOT_EXPR":
            return exp.Not(this=operands[0])
        kind = exp.And if operator == "AND_EXPR" else exp.Or
        tree = operands[0]
        for operand in operands[1:]:
            tree = kind(this=tree, expression=operand)
        return tree

    def _make_null_test(self, node: Node) -> exp.Expr:
        test = exp.Is(this=self.expression(node.node("arg")), expression=exp.Null())
        return exp.Not(this=test) if node.text("nulltesttype") == "IS_NOT_NULL" else test

    def _make_boolean_test(self, node: Node) -> exp.Expr:
        return call(BOOLEAN_TESTS[node.text("booltesttype")], self.expression(node.node("arg")))

    def _make_a_expr(self, node: Node) -> exp.Expr:
        kind = node.text("kind")
        names = node.names("name")
        if len(names) > 1 and names[0] != "pg_catalog":
            raise errors.unimplemented(f"the operator {'.'.join(names)}")
        make = KINDS.get(kind)
        if make is None:
            raise errors.unimplemented(f"An expression of the kind {kind.removeprefix('AEXPR_')}")
        return make(self, node, names[-1])

    def _make_case_expr(self, node: Node) -> exp.Expr:
        operand, default = node.get("arg"), node.get("defresult")
        branches = []
        for each in node.nodes("args"):
            condition = self.expression(each.node("expr"))
            result = self.expression(each.node("result"))
            each.finish()
            branches.append(exp.If(this=condition, true=result))
        return exp.Case(
            this=None if operand is None else self.expression(Node.of(operand)),
            ifs=branches,
            default=None if default is None else self.expression(Node.of(default)),
        )

    def _make_coalesce_expr(self, node: Node) -> exp.Expr:
        return call("COALESCE", *self.expressions(node.nodes("args")))

    def _make_min_max_expr(self, node: Node) -> exp.Expr:
        name = node.text("op").removeprefix("IS_")
        return call(name, *self.expressions(node.nodes("args")))

    def _make_sqlvalue_function(self, node: Node) -> exp.Expr:
        operation = node.text("op")
        node.ignore("typmod")
        if operation not in BARE_FUNCTIONS:
            raise errors.unimplemented(f"the function {operation.removeprefix('SVFOP_')}")
        return call(BARE_FUNCTIONS[operation].upper())

    def _make_a_array_expr(self, node: Node) -> exp.Expr:
        return exp.Array(expressions=self.expressions(node.nodes("elements")))

    def _make_a_indirection(self, node: Node) -> exp.Expr:
        tree = self.expression(node.node("arg"))
        for each in node.nodes("indirection"):
            if each.kind != "A_Indices":
                raise errors.unimplemented("A field of an expression")
            if each.get("is_slice"):
                tree = call("SLICE", tree, *(self._bound(each, end) for end in SLICE_ENDS))
            else:
                tree = call("SUBSCRIPT", tree, self.expression(each.node("uidx")))
            each.finish()
        return tree

    def _bound(self, node: Node, end: str) -> exp.Expr:
        """An end of a slice; one that is left out is that of the array."""
        if node.get(end) is not None:
            return self.expression(node.node(end))
        return exp.Literal.number(SLICE_ENDS[end])

    def _make_sub_link(self, node: Node) -> exp.Expr:
        kind = node.text("subLinkType")
        query = self._query(node.node("subselect"))
        if kind == "EXISTS_SUBLINK":
            return exp.Exists(this=query)
        if kind == "EXPR_SUBLINK":
            return exp.Subquery(this=query)
        if kind == "ARRAY_SUBLINK":
            return exp.Array(expressions=[query])
        sign = node.names("operName")
        if kind in QUANTIFIED and (sign or ["="]) == [QUANTIFIED[kind][0]]:
            test = self.expression(node.node("testexpr"))
            found = exp.In(this=test, query=exp.Subquery(this=query))
            return found if kind == "ANY_SUBLINK" else exp.Not(this=found)
        if kind in QUANTIFIED:
            raise errors.unsupported(QUANTIFIED[kind][1])
        raise errors.unimplemented(f"A subquery of the kind {kind.removesuffix('_SUBLINK')}")

    def _make_func_call(self, node: Node) -> exp.Expr:
        names = node.names("funcname")
        if len(names) > 1 and names[0] == "pg_catalog":
            names = names[1:]
        node.ignore("funcformat")
        if node.get("over") is not None:
            raise errors.invalid_argument("Window functions are not supported.")
        if len(names) == 1 and names[0] in BY_NAME and len(node.nodes("args")) == 1:
            return self._make_type_function(node, names[0])
        name = function_name(names)
        arguments = self.expressions(node.nodes("args"))
        if node.get("agg_star"):
            arguments = [exp.Star()]
        if node.get("agg_distinct"):
            arguments = [exp.Distinct(expressions=arguments[:1]), *arguments[1:]]
        keys = self.sort_keys(node.nodes("agg_order"))
        if keys and arguments:
            arguments[-1] = exp.Order(this=arguments[-1], expressions=keys)
        made = call(name, *arguments)
        condition = node.get("agg_filter")
        if condition is not None:
            made.meta[FILTER] = self.expression(Node.of(condition))
        return made

    def _make_named_arg(self, node: Node) -> exp.Expr:
        node.ignore("argnumber")
        name = exp.to_identifier(node.text("name"), quoted=True)
        return exp.Kwarg(this=name, expression=self.expression(node.node("arg")))

    def _make_set_to_default(self, node: Node) -> exp.Expr:
        return exp.Var(this="DEFAULT")


NODES: dict[str, Callable[[ExpressionTrees, Node], exp.Expr]] = {
    "ColumnRef": ExpressionTrees._make_column_ref,
    "ParamRef": ExpressionTrees._make_param_ref,
    "A_Const": ExpressionTrees._make_a_const,
    "TypeCast": ExpressionTrees._make_type_cast,
    "BoolExpr": ExpressionTrees._make_bool_expr,
    "NullTest": ExpressionTrees._make_null_test,
    "BooleanTest": ExpressionTrees._make_boolean_test,
    "A_Expr": ExpressionTrees._make_a_expr,
    "CaseExpr": ExpressionTrees._make_case_expr,
    "CoalesceExpr": ExpressionTrees._make_coalesce_expr,
    "MinMaxExpr": ExpressionTrees._make_min_max_expr,
    "SQLValueFunction": ExpressionTrees._make_sqlvalue_function,
    "A_ArrayExpr": ExpressionTrees._make_a_array_expr,
    "A_Indirection": ExpressionTrees._make_a_indirection,
    "SubLink": ExpressionTrees._make_sub_link,
    "FuncCall": ExpressionTrees._make_func_call,
    "NamedArgExpr": ExpressionTrees._make_named_arg,
    "SetToDefault": ExpressionTrees._make_set_to_default,
}
"""By the kind of a node."""


def function_name(names: list[str]) -> str:
    """The name by which the compiler knows a function. Raises INVALID_ARGUMENT."""
    written = ".".join(names)
    if written == "spanner.pending_commit_timestamp":
        return "PENDING_COMMIT_TIMESTAMP"
    name = written.upper()
    if name in POSTGRES_AGGREGATES:
        return POSTGRES_AGGREGATES[name]
    if name in AGGREGATE_CALLS or name in WINDOW_FUNCTIONS or name == "PENDING_COMMIT_TIMESTAMP":
        raise errors.invalid_argument(f"function {written} does not exist")
    return name


def cast(argument: exp.Expr, type_: Type, modifiers: tuple[int, ...], written: str) -> exp.Cast:
    """argument::type; text and varchar are one type, of which the name is kept."""
    kind = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=name_column(type_))
    tree = exp.Cast(this=argument, to=kind)
    shown = "character varying" if written == "varchar" else show_type(type_)
    tree.meta.update({TYPE: (type_, modifiers), WRITTEN: shown})
    return tree


def number_literal(text: str) -> exp.Expr:
    """A number of any length: ``Literal.number`` rounds a negative one to 28 digits."""
    number = exp.Literal(this=text.removeprefix("-"), is_string=False)
    return exp.Neg(this=number) if text.startswith("-") else number


def qualifiers(names: list[str]) -> dict[str, Any]:
    """The owners of a name, as a column of a tree has them."""
    if len(names) > 2:
        raise errors.unimplemented(f"the name {'.'.join(names)}")
    keys = ("table", "db")
    pairs = zip(keys, reversed(names), strict=False)
    return {key: exp.to_identifier(name, quoted=True) for key, name in pairs}


def name_of(node: Node, tree: exp.Expr) -> str:
    """The name of a column without AS."""
    if isinstance(tree, exp.Column):
        return str(tree.name)
    if node.kind == "TypeCast":
        inner = name_of(node.node("arg"), tree.this)
        return tree.args["to"].args["kind"] if inner == "?column?" else inner
    if node.kind == "SubLink" and isinstance(tree, exp.Subquery):
        items = tree.this.expressions
        return str(items[0].alias_or_name) if items else "?column?"
    named = {
        "SubLink": "exists" if isinstance(tree, exp.Exists) else "array",
        "CaseExpr": "case",
        "CoalesceExpr": "coalesce",
        "A_ArrayExpr": "array",
    }
    if node.kind == "SubLink" and isinstance(tree, exp.In):
        return "?column?"
    if node.kind in named:
        return named[node.kind]
    if node.kind == "A_Indirection":
        return name_of(node.node("arg"), tree.expressions[0])
    if node.kind == "A_Expr" and tree.name == "NULLIF":
        return "nullif"
    if node.kind == "FuncCall":
        return node.names("funcname")[-1]
    if node.kind in {"MinMaxExpr", "SQLValueFunction"}:
        return str(tree.name).lower()
    return "?column?"

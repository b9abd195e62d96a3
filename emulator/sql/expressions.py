"""Scalar expressions of GoogleSQL -> SQLite text with Spanner's types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from sqlglot import exp

from ddl.schema import StructField, Type, TypeCode
from emulator import errors
from emulator.sql.calls import call
from emulator.sql.coerce import cast, require, unify
from emulator.sql.scope import Context, Scope
from emulator.sql.types import (
    BOOL,
    BYTES,
    DATE,
    FLOAT64,
    FLOATS,
    INT64,
    JSON,
    NUMBERS,
    STRING,
    TIMESTAMP,
    Typed,
    array,
    from_datatype,
    name_of,
    quote_text,
)
from emulator.storage import forms

INT64_MAX = 2**63 - 1


class Subquery(Protocol):
    """Compiles a query inside an expression (given by the module of queries, which is above)."""

    def __call__(
        self, node: exp.Expr, outer: Scope | None, context: Context, /
    ) -> tuple[str, tuple[tuple[str, Type], ...]]:
        """SQLite text and the columns."""
        ...


class Expressions:
    """Compiles expressions; ``subquery`` is how queries inside them are compiled."""

    def __init__(self, subquery: Subquery) -> None:
        self._subquery = subquery

    def compile(self, node: exp.Expr, scope: Scope, context: Context) -> Typed:
        """One expression. Raises INVALID_ARGUMENT, or UNIMPLEMENTED for what is not known."""
        if scope.grouped is not None and not scope.in_aggregate:
            grouped = self._as_group_key(node, scope, context)
            if grouped is not None:
                return grouped
        handler = HANDLERS.get(type(node))
        if handler is None:
            raise errors.unimplemented(f"the expression {node.sql('bigquery')[:60]}")
        return handler(self, node, scope, context)

    def boolean(self, node: exp.Expr, scope: Scope, context: Context, where: str) -> Typed:
        """An expression that must be BOOL."""
        return require(self.compile(node, scope, context), BOOL, context, where)

    def _as_group_key(self, node: exp.Expr, scope: Scope, context: Context) -> Typed | None:
        assert scope.grouped is not None
        if isinstance(node, exp.Literal | exp.Parameter | exp.Null | exp.Boolean):
            return None
        if has_aggregate(node):
            return None
        scope.in_aggregate = True
        try:
            whole = self.compile(node, scope, context)
        finally:
            scope.in_aggregate = False
        return whole if whole.sql in scope.grouped else None

    def _column(self, node: exp.Column, scope: Scope, context: Context) -> Typed:
        if node.args.get("db"):
            raise errors.unimplemented(f"the path {node.sql('bigquery')}")
        if isinstance(node.this, exp.Star):
            raise errors.invalid_argument("* is not allowed here")
        if not node.table and node.name.casefold() in scope.aliases:
            alias = scope.aliases[node.name.casefold()]
            if scope.find(node.name, None) is None:
                return alias
        if node.table and scope.relation(node.table) is None:
            return self._field(node, scope, context)
        return replace(scope.resolve(node.name, node.table or None), column=node.name)

    def _field(self, node: exp.Column, scope: Scope, context: Context) -> Typed:
        """alias.field, where the alias is a STRUCT element or column."""
        owner = scope.resolve(node.table, None)
        return struct_field(owner, node.name)

    def _dot(self, node: exp.Dot, scope: Scope, context: Context) -> Typed:
        return struct_field(self.compile(node.this, scope, context), node.expression.name)

    def _parameter(self, node: exp.Parameter, scope: Scope, context: Context) -> Typed:
        return context.parameter(node.this.name)

    def _literal(self, node: exp.Literal, scope: Scope, context: Context) -> Typed:
        text = str(node.this)
        if node.is_string:
            return Typed(quote_text(text), STRING, literal=text)
        if text.isdigit():
            if int(text) > INT64_MAX:
                raise errors.invalid_argument(f"Invalid integer literal: {text}")
            return Typed(text, INT64, literal=text)
        return Typed(repr(float(text)), FLOAT64, literal=text)

    def _hex(self, node: exp.HexString, scope: Scope, context: Context) -> Typed:
        number = int(str(node.this), 16)
        return Typed(str(number), INT64, literal=str(number))

    def _bytes(self, node: exp.ByteString, scope: Scope, context: Context) -> Typed:
        raw = str(node.this).encode("latin-1", "backslashreplace")
        return Typed(f"x'{raw.hex()}'", BYTES)

    def _raw(self, node: exp.RawString, scope: Scope, context: Context) -> Typed:
        return Typed(quote_text(str(node.this)), STRING, literal=str(node.this))

    def _null(self, node: exp.Null, scope: Scope, context: Context) -> Typed:
        return Typed("NULL", None)

    def _constant(self, node: exp.Boolean, scope: Scope, context: Context) -> Typed:
        return Typed("1" if node.this else "0", BOOL)

    def _paren(self, node: exp.Paren, scope: Scope, context: Context) -> Typed:
        inner = self.compile(node.this, scope, context)
        return Typed(f"({inner.sql})", inner.type, inner.literal, inner.parameter, inner.column)

    def _alias(self, node: exp.Alias, scope: Scope, context: Context) -> Typed:
        inner = self.compile(node.this, scope, context)
        return Typed(inner.sql, inner.type, inner.literal, inner.parameter, node.alias)

    def _connector(self, node: exp.Connector, scope: Scope, context: Context) -> Typed:
        word = "AND" if isinstance(node, exp.And) else "OR"
        left = self.boolean(node.this, scope, context, f"An operand of {word}")
        right = self.boolean(node.expression, scope, context, f"An operand of {word}")
        return Typed(f"({left.sql} {word} {right.sql})", BOOL)

    def _not(self, node: exp.Not, scope: Scope, context: Context) -> Typed:
        inner = self.boolean(node.this, scope, context, "The operand of NOT")
        if isinstance(node.this, exp.Is) and inner.sql.endswith(" IS NULL)"):
            return Typed(inner.sql.removesuffix(" IS NULL)") + " IS NOT NULL)", BOOL)
        return Typed(f"(NOT {inner.sql})", BOOL)

    def _neg(self, node: exp.Neg, scope: Scope, context: Context) -> Typed:
        least = isinstance(node.this, exp.Literal) and str(node.this.this) == str(INT64_MAX + 1)
        if least and not node.this.is_string:
            return Typed(f"(-{INT64_MAX} - 1)", INT64, literal=str(-INT64_MAX - 1))
        inner = self.compile(node.this, scope, context)
        if inner.type in {INT64, FLOAT64} and inner.literal is not None and inner.literal[0] != "-":
            return Typed(f"(-{inner.sql})", inner.type, literal=f"-{inner.literal}")
        zero = Typed("0", INT64, literal="0")
        return arithmetic("sub", [zero, inner], context)

    def _comparison(self, node: exp.Binary, scope: Scope, context: Context) -> Typed:
        operator = COMPARISONS[type(node)]
        items = [self.compile(side, scope, context) for side in (node.this, node.expression)]
        (left, right), type_ = unify(items, context, f"operator {operator}")
        if type_.code in {TypeCode.ARRAY, TypeCode.JSON}:
            raise errors.invalid_argument(
                f"Comparison operator {operator} is not defined for {name_of(type_)}"
            )
        return Typed(compare(left.sql, operator, right.sql, type_), BOOL)

    def _is(self, node: exp.Is, scope: Scope, context: Context) -> Typed:
        what = node.expression
        inner = self.compile(node.this, scope, context)
        if isinstance(what, exp.Null):
            if inner.parameter is not None:
                context.infer(inner.parameter, STRING)
            return Typed(f"({inner.sql} IS NULL)", BOOL)
        if isinstance(what, exp.Boolean):
            inner = require(inner, BOOL, context, "The operand of IS")
            return Typed(f"({inner.sql} IS {1 if what.this else 0})", BOOL)
        raise errors.invalid_argument(f"IS {what.sql('bigquery')} is not an operator")

    def _between(self, node: exp.Between, scope: Scope, context: Context) -> Typed:
        parts = (node.this, node.args["low"], node.args["high"])
        items = [self.compile(part, scope, context) for part in parts]
        (item, low, high), type_ = unify(items, context, "operator BETWEEN")
        first = compare(item.sql, ">=", low.sql, type_)
        return Typed(f"({first} AND {compare(item.sql, '<=', high.sql, type_)})", BOOL)

    def _in(self, node: exp.In, scope: Scope, context: Context) -> Typed:
        item = self.compile(node.this, scope, context)
        if node.args.get("unnest"):
            return self._in_unnest(item, node.args["unnest"], scope, context)
        if node.args.get("query"):
            query = node.args["query"]
            sql, columns = self._subquery(
                query.this if isinstance(query, exp.Subquery) else query, scope, context
            )
            if len(columns) != 1:
                raise errors.invalid_argument(
                    "Subquery of type IN must have only one output column"
                )
            converted = require(item, columns[0][1], context, "The left side of IN")
            return Typed(f"({converted.sql} IN ({sql}))", BOOL)
        items = [self.compile(each, scope, context) for each in node.expressions]
        unified, _ = unify([item, *items], context, "operator IN")
        listed = ", ".join(each.sql for each in unified[1:])
        return Typed(f"({unified[0].sql} IN ({listed}))", BOOL)

    def _in_unnest(self, item: Typed, node: exp.Unnest, scope: Scope, context: Context) -> Typed:
        values = self.compile(node.expressions[0], scope, context)
        if values.type is None and item.type is not None:
            values = require(values, array(item.type), context, "IN UNNEST")
        if values.type is None or values.type.element is None:
            raise errors.invalid_argument("The argument of UNNEST must be an array")
        item = require(item, values.type.element, context, "The left side of IN")
        inner = elements(values)
        return Typed(f'({item.sql} IN (SELECT "value" FROM {inner}))', BOOL)

    def _like(self, node: exp.Like, scope: Scope, context: Context) -> Typed:
        items = [self.compile(side, scope, context) for side in (node.this, node.expression)]
        (left, right), type_ = unify(items, context, "operator LIKE")
        if type_.code not in {TypeCode.STRING, TypeCode.BYTES}:
            raise errors.invalid_argument(f"LIKE is not defined for {name_of(type_)}")
        negation = "NOT " if node.args.get("negate") else ""
        return Typed(f"({negation}fn_like({left.sql}, {right.sql}))", BOOL)

    def _case(self, node: exp.Case, scope: Scope, context: Context) -> Typed:
        conditions, results = [], []
        for branch in node.args["ifs"]:
            results.append(self.compile(branch.args["true"], scope, context))
            test = branch.this
            if node.this is not None:
                test = exp.EQ(this=node.this.copy(), expression=branch.this.copy())
            conditions.append(self.boolean(test, scope, context, "The condition of CASE").sql)
        default = node.args.get("default")
        if default is not None:
            results.append(self.compile(default, scope, context))
        unified, type_ = unify(results, context, "CASE")
        text = " ".join(
            f"WHEN {test} THEN {result.sql}"
            for test, result in zip(conditions, unified, strict=False)
        )
        otherwise = f" ELSE {unified[-1].sql}" if default is not None else ""
        return Typed(f"CASE {text}{otherwise} END", type_)

    def _if(self, node: exp.If, scope: Scope, context: Context) -> Typed:
        whole = exp.Case(ifs=[node.copy()], default=node.args.get("false"))
        return self._case(whole, scope, context)

    def _cast(self, node: exp.Cast, scope: Scope, context: Context) -> Typed:
        inner = self.compile(node.this, scope, context)
        return cast(inner, from_datatype(node.to), isinstance(node, exp.TryCast), context)

    def _arithmetic(self, node: exp.Binary, scope: Scope, context: Context) -> Typed:
        items = [self.compile(side, scope, context) for side in (node.this, node.expression)]
        return arithmetic(ARITHMETIC[type(node)], items, context)

    def _concat(self, node: exp.DPipe, scope: Scope, context: Context) -> Typed:
        items = [self.compile(side, scope, context) for side in (node.this, node.expression)]
        (left, right), type_ = unify(items, context, "operator ||")
        if type_.code is TypeCode.STRING:
            return Typed(f"({left.sql} || {right.sql})", STRING)
        function = {TypeCode.BYTES: "fn_concat_bytes", TypeCode.ARRAY: "fn_concat_arrays"}
        if type_.code not in function:
            raise errors.invalid_argument(f"|| is not defined for {name_of(type_)}")
        return Typed(f"{function[type_.code]}({left.sql}, {right.sql})", type_)

    def _bitwise(self, node: exp.Binary, scope: Scope, context: Context) -> Typed:
        operator = BITWISE[type(node)]
        left, right = (
            require(self.compile(side, scope, context), INT64, context, f"An operand of {operator}")
            for side in (node.this, node.expression)
        )
        if operator in BITWISE_FUNCTIONS:
            return Typed(f"{BITWISE_FUNCTIONS[operator]}({left.sql}, {right.sql})", INT64)
        return Typed(f"({left.sql} {operator} {right.sql})", INT64)

    def _bitwise_not(self, node: exp.BitwiseNot, scope: Scope, context: Context) -> Typed:
        inner = self.compile(node.this, scope, context)
        return Typed(f"(~{require(inner, INT64, context, 'The operand of ~').sql})", INT64)

    def _json(self, node: exp.ParseJSON, scope: Scope, context: Context) -> Typed:
        try:
            return Typed(quote_text(forms.json_form(str(node.this.this))), JSON)
        except ValueError as error:
            raise errors.invalid_argument(f"Invalid JSON literal: {error}") from error

    def _exists(self, node: exp.Exists, scope: Scope, context: Context) -> Typed:
        query = node.this.this if isinstance(node.this, exp.Subquery) else node.this
        sql, _ = self._subquery(query, scope, context)
        return Typed(f"EXISTS ({sql})", BOOL)

    def _scalar_subquery(self, node: exp.Subquery, scope: Scope, context: Context) -> Typed:
        sql, columns = self._subquery(node.this, scope, context)
        if len(columns) != 1:
            raise errors.invalid_argument("Scalar subquery must have only one output column")
        return Typed(f'(SELECT agg_single("v") FROM ({sql_as_v(sql, columns)}))', columns[0][1])

    def _array(self, node: exp.Array, scope: Scope, context: Context) -> Typed:
        if len(node.expressions) == 1 and isinstance(node.expressions[0], exp.Query):
            sql, columns = self._subquery(node.expressions[0], scope, context)
            if len(columns) != 1:
                raise errors.invalid_argument("ARRAY subquery must have only one output column")
            inner = sql_as_v(sql, columns)
            return Typed(f'(SELECT agg_array("v") FROM ({inner}))', array(columns[0][1]))
        items = [self.compile(each, scope, context) for each in node.expressions]
        if not items:
            return Typed("'[]'", array(INT64), literal="[]")
        unified, type_ = unify(items, context, "ARRAY")
        return Typed(f"fn_array({', '.join(each.sql for each in unified)})", array(type_))

    def _struct(self, node: exp.Struct, scope: Scope, context: Context) -> Typed:
        items, fields = [], []
        for each in node.expressions:
            value = each.expression if isinstance(each, exp.PropertyEQ) else each
            item = self.compile(value, scope, context)
            name = each.this.name if isinstance(each, exp.PropertyEQ) else item.column
            items.append(item.sql)
            fields.append(StructField(name, item.type or INT64))
        return Typed(f"fn_array({', '.join(items)})", Type(TypeCode.STRUCT, fields=tuple(fields)))

    def _bracket(self, node: exp.Bracket, scope: Scope, context: Context) -> Typed:
        values = self.compile(node.this, scope, context)
        if values.type is None or values.type.element is None:
            raise errors.unimplemented(f"a subscript of {name_of(values.type)}")
        position = self.compile(node.expressions[0], scope, context)
        position = require(position, INT64, context, "An array position")
        shift = node.args.get("offset") or 0
        safe = 1 if node.args.get("safe") else 0
        sql = f"fn_element({values.sql}, {position.sql} - {shift}, {safe})"
        return from_element(sql, values.type.element)

    def _call(self, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
        return call(self.compile, node, scope, context)

    def _extract(self, node: exp.Extract, scope: Scope, context: Context) -> Typed:
        source, zone = node.expression, "'America/Los_Angeles'"
        if isinstance(source, exp.AtTimeZone):
            zone = self.compile(source.args["zone"], scope, context).sql
            source = source.this
        inner = self.compile(source, scope, context)
        part = node.this.name.upper()
        if inner.type == DATE:
            return Typed(f"fn_extract_date('{part}', {inner.sql})", INT64)
        inner = require(inner, TIMESTAMP, context, "The argument of EXTRACT")
        result = DATE if part == "DATE" else INT64
        return Typed(f"fn_extract_timestamp('{part}', {inner.sql}, {zone})", result)


def has_aggregate(node: exp.Expr) -> bool:
    """True when an aggregate function stands in the expression, outside of subqueries."""
    if isinstance(node, exp.Anonymous) and node.name.upper() in AGGREGATES:
        return not isinstance(node.parent, exp.Window)
    if isinstance(node, exp.Query):
        return False
    return any(has_aggregate(child) for child in node.iter_expressions())


AGGREGATES = frozenset(
    [
        "COUNT",
        "COUNTIF",
        "SUM",
        "AVG",
        "MIN",
        "MAX",
        "ANY_VALUE",
        "ARRAY_AGG",
        "STRING_AGG",
        "LOGICAL_AND",
        "LOGICAL_OR",
        "BIT_AND",
        "BIT_OR",
        "BIT_XOR",
        "ARRAY_CONCAT_AGG",
        "STDDEV",
        "VARIANCE",
        "STDDEV_SAMP",
        "VAR_SAMP",
    ]
)


def struct_field(owner: Typed, name: str) -> Typed:
    """A field of a STRUCT value."""
    if owner.type is None or owner.type.code is not TypeCode.STRUCT:
        raise errors.invalid_argument(
            f"Cannot access field {name} on a value with type {name_of(owner.type)}"
        )
    for number, each in enumerate(owner.type.fields):
        if each.name.casefold() == name.casefold():
            element = from_element(f"fn_element({owner.sql}, {number}, 0)", each.type)
            return Typed(element.sql, element.type, column=each.name)
    raise errors.invalid_argument(f"Field name {name} does not exist in {name_of(owner.type)}")


def from_element(sql: str, type_: Type) -> Typed:
    """An element of a JSON array in the storage form of its type."""
    if type_.code is TypeCode.BYTES:
        return Typed(f"fn_from_base64({sql})", type_)
    if type_.code in FLOATS:
        return Typed(f"fn_float_element({sql})", type_)
    return Typed(sql, type_)


def elements(values: Typed) -> str:
    """A table with the columns "value" and "offset" of an array's elements."""
    assert values.type is not None
    assert values.type.element is not None
    value = from_element('"value"', values.type.element).sql
    if values.type.element.code is TypeCode.STRUCT:
        value = 'json("value")'
    return f'(SELECT {value} AS "value", "key" AS "offset" FROM json_each({values.sql}))'


def sql_as_v(sql: str, columns: tuple[tuple[str, Type], ...]) -> str:
    """A one-column query whose column is called v."""
    return f'WITH "$q"("v") AS ({sql}) SELECT "v" FROM "$q"' if columns else sql


def compare(left: str, operator: str, right: str, type_: Type) -> str:
    """A comparison; NaN (a text in storage) is neither equal to, less nor greater than anything."""
    text = f"{left} {operator} {right}"
    if type_.code in FLOATS:
        if operator == "<>":
            return f"({text} OR {left} = 'NaN')"
        return f"({text} AND {left} <> 'NaN' AND {right} <> 'NaN')"
    return f"({text})"


def arithmetic(name: str, items: list[Typed], context: Context) -> Typed:
    """+ - * / on numbers, checked for overflow; dates and timestamps take functions instead."""
    unified, type_ = unify(items, context, f"operator {name}")
    if type_.code not in NUMBERS:
        raise errors.invalid_argument(f"No matching signature for {name} on {name_of(type_)}")
    if name == "div" and type_.code in {TypeCode.INT64, TypeCode.FLOAT32}:
        type_ = FLOAT64
        unified = [require(each, FLOAT64, context, "operator /") for each in items]
    prefix = {TypeCode.INT64: "int64", TypeCode.NUMERIC: "numeric"}.get(type_.code, "float64")
    return Typed(f"{prefix}_{name}({unified[0].sql}, {unified[1].sql})", type_)


COMPARISONS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
ARITHMETIC = {exp.Add: "add", exp.Sub: "sub", exp.Mul: "mul", exp.Div: "div"}
BITWISE = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}

BITWISE_FUNCTIONS = {"^": "fn_bit_xor", "<<": "fn_shift_left", ">>": "fn_shift_right"}

Handler = Callable[..., Typed]
HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.Column: Expressions._column,
    exp.Dot: Expressions._dot,
    exp.Parameter: Expressions._parameter,
    exp.Literal: Expressions._literal,
    exp.HexString: Expressions._hex,
    exp.ByteString: Expressions._bytes,
    exp.RawString: Expressions._raw,
    exp.Null: Expressions._null,
    exp.Boolean: Expressions._constant,
    exp.Paren: Expressions._paren,
    exp.Alias: Expressions._alias,
    exp.And: Expressions._connector,
    exp.Or: Expressions._connector,
    exp.Not: Expressions._not,
    exp.Neg: Expressions._neg,
    exp.BitwiseNot: Expressions._bitwise_not,
    exp.ParseJSON: Expressions._json,
    exp.Is: Expressions._is,
    exp.Between: Expressions._between,
    exp.In: Expressions._in,
    exp.Like: Expressions._like,
    exp.Case: Expressions._case,
    exp.If: Expressions._if,
    exp.Cast: Expressions._cast,
    exp.TryCast: Expressions._cast,
    exp.DPipe: Expressions._concat,
    exp.Exists: Expressions._exists,
    exp.Subquery: Expressions._scalar_subquery,
    exp.Array: Expressions._array,
    exp.Struct: Expressions._struct,
    exp.Bracket: Expressions._bracket,
    exp.Anonymous: Expressions._call,
    exp.Extract: Expressions._extract,
    **dict.fromkeys(COMPARISONS, Expressions._comparison),
    **dict.fromkeys(ARITHMETIC, Expressions._arithmetic),
    **dict.fromkeys(BITWISE, Expressions._bitwise),
}

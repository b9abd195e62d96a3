"""Operators: arithmetic, comparison, logic, LIKE, CASE, casts."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql import interval_calls
from emulator.sql.casting import cast_explicitly, typed_literal
from emulator.sql.coerce import require, unify
from emulator.sql.comparison import compare
from emulator.sql.compiler import Compiler, Handler, refuse_other_clauses
from emulator.sql.constructors import typed_constructor
from emulator.sql.consumption import copy_recorded
from emulator.sql.functions.numbers import INT64_MAX
from emulator.sql.native_calls import render_call
from emulator.sql.parsed import TYPED_CONSTRUCTOR, TYPED_LITERAL
from emulator.sql.scope import Context, Scope
from emulator.sql.types import Typed, name_of, read_datatype
from emulator.values.types import BOOL, BYTES, FLOAT64, INT64, INTERVAL, NUMBERS, STRING
from spanner_schema.model.column_types import TypeCode

TERMS_IN_CHAIN_MAX = 100
FLOAT_OR_INT = {INT64, FLOAT64}


def refuse_null_operands(operator: str, *operands: exp.Expr) -> None:
    """INVALID_ARGUMENT where NULL itself is an operand: it has no type."""
    for operand in operands:
        inner = operand
        while isinstance(inner, exp.Paren):
            inner = inner.this
        if isinstance(inner, exp.Null):
            raise errors.invalid_argument(f"Operands of {operator} cannot be literal NULL")


def connector(compiler: Compiler, node: exp.Connector, scope: Scope, context: Context) -> Typed:
    """AND, OR; a chain of them is compiled at once, whatever its length.

    Under GROUP BY, where the beginning of a chain may be a key, step by step.
    """
    word = "AND" if isinstance(node, exp.And) else "OR"
    operands = [node.this, node.expression] if scope.grouped else chain_of(node)
    terms = [compiler.boolean(o, scope, context, f"An operand of {word}").sql for o in operands]
    return Typed(join_terms(terms, word), BOOL)


def chain_of(node: exp.Connector) -> list[exp.Expr]:
    """The operands of a chain of the same connector, in their order."""
    terms: list[exp.Expr] = []
    left: exp.Expr = node
    while type(left) is type(node):
        terms.append(left.expression)
        left = left.this
    return [left, *reversed(terms)]


def join_terms(terms: list[str], word: str) -> str:
    """Terms with a word between: a long chain as a tree, because SQLite limits the depth of one."""
    if len(terms) <= TERMS_IN_CHAIN_MAX:
        return f"({f' {word} '.join(terms)})"
    middle = len(terms) // 2
    return f"({join_terms(terms[:middle], word)} {word} {join_terms(terms[middle:], word)})"


def negation(compiler: Compiler, node: exp.Not, scope: Scope, context: Context) -> Typed:
    """NOT."""
    refuse_null_operands("NOT", node.this)
    inner = compiler.boolean(node.this, scope, context, "The operand of NOT")
    if isinstance(node.this, exp.Is) and inner.sql.endswith(" IS NULL)"):
        return Typed(inner.sql.removesuffix(" IS NULL)") + " IS NOT NULL)", BOOL)
    return Typed(f"(NOT {inner.sql})", BOOL)


def minus(compiler: Compiler, node: exp.Neg, scope: Scope, context: Context) -> Typed:
    """-x; the least INT64 has no positive counterpart to negate."""
    inner_node = node.this
    if is_least_int64(inner_node):
        return Typed(f"(-{INT64_MAX} - 1)", INT64, literal=str(-INT64_MAX - 1))
    refuse_null_operands("-", inner_node)
    inner = compiler.compile(inner_node, scope, context)
    if inner.literal is not None and inner.type in FLOAT_OR_INT and inner.literal[0] != "-":
        return Typed(f"(-{inner.sql})", inner.type, literal=f"-{inner.literal}")
    if inner.type is not None and inner.type.code in {TypeCode.FLOAT64, TypeCode.FLOAT32}:
        return Typed(f"float64_negate({inner.sql})", inner.type)
    if inner.type == INTERVAL:
        return arithmetic("mul", [inner, Typed("(-1)", INT64)], context)
    return arithmetic("sub", [Typed("0", INT64, literal="0"), inner], context)


def plus(compiler: Compiler, node: exp.Anonymous, scope: Scope, context: Context) -> Typed:
    """+x of a number."""
    (operand,) = node.expressions
    refuse_null_operands("+", operand)
    inner = compiler.compile(operand, scope, context)
    if inner.type is not None and inner.type.code not in NUMBERS:
        raise errors.invalid_argument(
            f"Operands of + must be numeric type but was {name_of(inner.type)}"
        )
    return replace(inner, column="")


def is_least_int64(node: exp.Expr) -> bool:
    """Whether a number, in digits or hexadecimal, is an INT64 only behind a minus."""
    if isinstance(node, exp.HexString):
        return int(str(node.this), 16) == INT64_MAX + 1
    is_number = isinstance(node, exp.Literal) and not node.is_string
    return is_number and str(node.this) == str(INT64_MAX + 1)


def comparison(compiler: Compiler, node: exp.Binary, scope: Scope, context: Context) -> Typed:
    """= <> < <= > >=."""
    operator = COMPARISONS[type(node)]
    refuse_null_operands(operator, node.this, node.expression)
    items = [compiler.compile(side, scope, context) for side in (node.this, node.expression)]
    (left, right), type_ = unify(items, context, f"operator {operator}")
    return Typed(compare(left, operator, right, type_), BOOL)


def refuse_distinct(compiler: Compiler, node: exp.Binary, scope: Scope, context: Context) -> Typed:
    """IS [NOT] DISTINCT FROM: GoogleSQL has it, Spanner does not."""
    raise errors.invalid_argument("IS DISTINCT FROM is not supported")


def is_(compiler: Compiler, node: exp.Is, scope: Scope, context: Context) -> Typed:
    """IS NULL, IS TRUE, IS FALSE."""
    what = node.expression
    inner = compiler.compile(node.this, scope, context)
    if isinstance(what, exp.Null):
        return Typed(f"({inner.sql} IS NULL)", BOOL)
    if isinstance(what, exp.Boolean):
        inner = require(inner, BOOL, context, "The operand of IS")
        return Typed(f"({inner.sql} IS {1 if what.this else 0})", BOOL)
    raise errors.invalid_argument(f"IS {what.sql('bigquery')} is not an operator")


def between(compiler: Compiler, node: exp.Between, scope: Scope, context: Context) -> Typed:
    """x BETWEEN low AND high."""
    refuse_other_clauses(node, "this", "low", "high")
    parts = (node.this, node.args["low"], node.args["high"])
    items = [compiler.compile(part, scope, context) for part in parts]
    (item, low, high), type_ = unify(items, context, "operator BETWEEN")
    first = compare(item, ">=", low, type_)
    return Typed(f"({first} AND {compare(item, '<=', high, type_)})", BOOL)


def like(compiler: Compiler, node: exp.Like, scope: Scope, context: Context) -> Typed:
    """x [NOT] LIKE pattern."""
    refuse_other_clauses(node, "this", "expression", "negate")
    if isinstance(node.expression, exp.Any | exp.All):
        raise errors.unimplemented("LIKE with a quantifier")
    refuse_null_operands("LIKE", node.this, node.expression)
    items = [compiler.compile(side, scope, context) for side in (node.this, node.expression)]
    (left, right), type_ = unify(items, context, "operator LIKE")
    if type_ not in {STRING, BYTES}:
        raise errors.invalid_argument(f"LIKE is not defined for {name_of(type_)}")
    word = "NOT " if node.args.get("negate") else ""
    return Typed(f"({word}fn_like({left.sql}, {right.sql}))", BOOL)


def case(compiler: Compiler, node: exp.Case, scope: Scope, context: Context) -> Typed:
    """CASE with and without an operand."""
    conditions, results = [], []
    operand = None if node.this is None else compiler.compile(node.this, scope, context)
    for branch in node.args["ifs"]:
        results.append(compiler.compile(branch.args["true"], scope, context))
        if operand is None:
            where = "The condition of CASE"
            conditions.append(compiler.boolean(branch.this, scope, context, where).sql)
            continue
        items = [operand, compiler.compile(branch.this, scope, context)]
        (left, right), type_ = unify(items, context, "operator =")
        conditions.append(compare(left, "=", right, type_))
    default = node.args.get("default")
    if default is not None:
        results.append(compiler.compile(default, scope, context))
    unified, type_ = unify(results, context, "CASE")
    text = " ".join(
        f"WHEN {test} THEN {result.sql}" for test, result in zip(conditions, unified, strict=False)
    )
    otherwise = f" ELSE {unified[-1].sql}" if default is not None else ""
    may_be_null = default is None or any(each.may_be_null for each in unified)
    return Typed(f"CASE {text}{otherwise} END", type_, may_be_null=may_be_null)


def if_(compiler: Compiler, node: exp.If, scope: Scope, context: Context) -> Typed:
    """IF(condition, a, b)."""
    if node.args.get("false") is None:
        raise errors.invalid_argument("No matching signature for function IF with two arguments")
    whole = exp.Case(ifs=[copy_recorded(node)], default=node.args.get("false"))
    return case(compiler, whole, scope, context)


def cast(compiler: Compiler, node: exp.Cast, scope: Scope, context: Context) -> Typed:
    """CAST, SAFE_CAST, and what the parser makes one: DATE '...', ARRAY<T>[...], STRUCT<T>(...)."""
    refuse_other_clauses(node, "this", "to", "safe", "requires_string")
    target = read_datatype(node.to, context.protos)
    if TYPED_CONSTRUCTOR in node.meta:
        return typed_constructor(compiler, node.this, target, scope, context)
    inner = compiler.compile(node.this, scope, context)
    if TYPED_LITERAL in node.meta:
        return typed_literal(str(inner.literal), target)
    return cast_explicitly(inner, target, isinstance(node, exp.TryCast), context)


def binary(compiler: Compiler, node: exp.Binary, scope: Scope, context: Context) -> Typed:
    """+ - * /."""
    refuse_null_operands(SIGNS[ARITHMETIC[type(node)]], node.this, node.expression)
    items = [compiler.compile(side, scope, context) for side in (node.this, node.expression)]
    return arithmetic(ARITHMETIC[type(node)], items, context)


def concatenation(compiler: Compiler, node: exp.DPipe, scope: Scope, context: Context) -> Typed:
    """|| of STRING, BYTES and ARRAY."""
    refuse_null_operands("||", node.this, node.expression)
    items = [compiler.compile(side, scope, context) for side in (node.this, node.expression)]
    (left, right), type_ = unify(items, context, "operator ||")
    if type_.code is TypeCode.STRING:
        return Typed(f"({left.sql} || {right.sql})", STRING)
    function = {TypeCode.BYTES: "fn_concat_bytes", TypeCode.ARRAY: "fn_concat_arrays"}
    if type_.code not in function:
        raise errors.invalid_argument(f"|| is not defined for {name_of(type_)}")
    return Typed(f"{function[type_.code]}({left.sql}, {right.sql})", type_)


def bitwise(compiler: Compiler, node: exp.Binary, scope: Scope, context: Context) -> Typed:
    """& | ^ << >> of INT64 and of BYTES."""
    operator = BITWISE[type(node)]
    if operator not in {"<<", ">>"}:
        refuse_null_operands(operator, node.this, node.expression)
    items = [compiler.compile(side, scope, context) for side in (node.this, node.expression)]
    if items[0].type == BYTES:
        return bitwise_bytes(operator, items[0], items[1], context)
    left, right = (require(i, INT64, context, f"An operand of {operator}") for i in items)
    if operator in BITWISE_FUNCTIONS:
        return Typed(render_call(BITWISE_FUNCTIONS[operator], [left.sql, right.sql]), INT64)
    return Typed(f"({left.sql} {operator} {right.sql})", INT64)


def bitwise_bytes(operator: str, left: Typed, right: Typed, context: Context) -> Typed:
    """The same of BYTES; a shift is by an INT64."""
    operand_type = INT64 if operator in {"<<", ">>"} else BYTES
    other = require(right, operand_type, context, f"An operand of {operator}")
    return Typed(f"{BYTES_FUNCTIONS[operator]}({left.sql}, {other.sql})", BYTES)


def bitwise_not(compiler: Compiler, node: exp.BitwiseNot, scope: Scope, context: Context) -> Typed:
    """~x."""
    refuse_null_operands("~", node.this)
    inner = compiler.compile(node.this, scope, context)
    if inner.type == BYTES:
        return Typed(f"fn_bytes_not({inner.sql})", BYTES)
    return Typed(f"(~{require(inner, INT64, context, 'The operand of ~').sql})", INT64)


def arithmetic(name: str, items: list[Typed], context: Context) -> Typed:
    """+ - * / on numbers, checked for overflow."""
    sign = SIGNS[name]
    interval = interval_calls.arithmetic(name, items, context)
    if interval is not None:
        return interval
    if any(item.type is not None and item.type.code not in NUMBERS for item in items):
        types = ", ".join(name_of(item.type) for item in items)
        raise errors.invalid_argument(
            f"No matching signature for operator {sign} for argument types: {types}"
        )
    unified, type_ = unify(items, context, f"operator {sign}")
    if type_.code not in NUMBERS:
        unified = [require(item, INT64, context, f"operator {sign}") for item in items]
        type_ = INT64
    if (name == "div" and type_.code is not TypeCode.NUMERIC) or type_.code is TypeCode.FLOAT32:
        type_ = FLOAT64
        unified = [require(each, FLOAT64, context, f"operator {sign}") for each in items]
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
SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
ARITHMETIC = {exp.Add: "add", exp.Sub: "sub", exp.Mul: "mul", exp.Div: "div"}
BITWISE = {
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
BYTES_FUNCTIONS = {
    "&": "fn_bytes_and",
    "|": "fn_bytes_or",
    "^": "fn_bytes_xor",
    "<<": "fn_bytes_shift_left",
    ">>": "fn_bytes_shift_right",
}
BITWISE_FUNCTIONS = {"^": "fn_bit_xor", "<<": "fn_shift_left", ">>": "fn_shift_right"}

HANDLERS: dict[type[exp.Expr], Handler] = {
    exp.And: connector,
    exp.Or: connector,
    exp.Not: negation,
    exp.Neg: minus,
    exp.BitwiseNot: bitwise_not,
    exp.Is: is_,
    exp.NullSafeEQ: refuse_distinct,
    exp.NullSafeNEQ: refuse_distinct,
    exp.Between: between,
    exp.Like: like,
    exp.Case: case,
    exp.If: if_,
    exp.Cast: cast,
    exp.TryCast: cast,
    exp.DPipe: concatenation,
    **dict.fromkeys(COMPARISONS, comparison),
    **dict.fromkeys(ARITHMETIC, binary),
    **dict.fromkeys(BITWISE, bitwise),
}

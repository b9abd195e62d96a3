"""Expressions of a schema as Spanner tells them: every constant and every conversion with its type,
every operator in parentheses.

What has no such spelling here stays as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from emulator.errors import SpannerError
from emulator.sql.functions.postgres_casts import parse_value
from emulator.sql.postgres import casts, functions
from emulator.sql.postgres.arithmetic import ARITHMETIC, BITWISE
from emulator.sql.postgres.expression_trees import TYPE, WRITTEN
from emulator.sql.postgres.operator_trees import COMPARISONS, OPERATOR
from emulator.sql.postgres.operators import JSON_OPERATORS
from emulator.sql.postgres.type_names import show_type
from emulator.sql.scope import Context
from emulator.sql.types import Typed, drop_length
from emulator.values.types import BOOL, INT64, INTERVAL, PG_NUMERIC, STRING, array
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.syntax.postgres.spelling import PostgreSqlSpelling

SIGNS = {kind: sign for sign, kind in COMPARISONS.items()}
LIKES = {"LIKE": "~~", "ILIKE": "~~*"}
BARE = {
    "CURRENT_TIMESTAMP": "CURRENT_TIMESTAMP",
    "CURRENT_DATE": "CURRENT_DATE",
    "NOW": "now()",
    "PENDING_COMMIT_TIMESTAMP": "spanner.pending_commit_timestamp()",
}
CAPITALS = {"COALESCE", "NULLIF", "GREATEST", "LEAST"}
KEYWORDS = {"substring", "position", "overlay", "trim", "normalize"}
"""Functions whose names are words of PostgreSQL's grammar: they are told in quotes."""
QUOTE = PostgreSqlSpelling().quote_column


class NoSpellingError(Exception):
    """An expression that is told as it was written."""


class ExpressionSpelling:
    """Spells the expressions of one table; ``typed`` compiles a part of one, for its type."""

    def __init__(self, typed: Callable[[exp.Expr], Typed], context: Context) -> None:
        self._typed = typed
        self._context = context

    def spell(self, node: exp.Expr, wanted: Type | None = None) -> str:
        """An expression, converted to the wanted type. Raises NoSpellingError."""
        wanted = None if wanted is None else drop_length(wanted)
        item = self._typed(node)
        if isinstance(node, exp.Null):
            return f"NULL::{show_type(wanted or STRING)}"
        if casts.is_unknown(item):
            return constant(str(item.literal), wanted or STRING)
        maker = MAKERS.get(type(node))
        if maker is None:
            raise NoSpellingError
        text = maker(self, node)
        if wanted is None or item.type is None or drop_length(item.type) == wanted:
            return text
        return f"({text})::{show_type(wanted)}"

    def _pair(self, nodes: Sequence[exp.Expr], type_: Type | None = None) -> list[str]:
        """Several parts, as the type that an operator takes them in."""
        target = type_ or casts.operand_type([self._typed(each) for each in nodes])
        return [self.spell(each, target) for each in nodes]

    def _united(self, nodes: Sequence[exp.Expr]) -> list[str]:
        """Several parts, as the one type of CASE, COALESCE and arrays."""
        _, type_ = casts.unify([self._typed(each) for each in nodes], self._context, "CASE")
        return [self.spell(each, type_) for each in nodes]

    def _literal(self, node: exp.Expr) -> str:
        return constant(str(node.this), self._typed(node).type or STRING)

    def _negative(self, node: exp.Expr) -> str:
        return constant(f"-{node.this.this}", self._typed(node).type or STRING)

    def _boolean(self, node: exp.Expr) -> str:
        return "true" if node.this else "false"

    def _column(self, node: exp.Expr) -> str:
        return QUOTE(node.name)

    def _comparison(self, node: exp.Expr) -> str:
        assert isinstance(node, exp.Binary)
        left, right = self._pair([node.this, node.expression])
        return f"({left} {SIGNS[type(node)]} {right})"

    def _connector(self, node: exp.Expr) -> str:
        word = " AND " if isinstance(node, exp.And) else " OR "
        parts: list[exp.Expr] = []
        left = node
        while type(left) is type(node):
            parts.insert(0, left.args["expression"])
            left = left.this
        return f"({word.join(self.spell(each, BOOL) for each in (left, *parts))})"

    def _not(self, node: exp.Expr) -> str:
        inner = node.this
        if isinstance(inner, exp.Is):
            return f"({self.spell(inner.this)} IS NOT NULL)"
        if isinstance(inner, exp.Anonymous) and inner.name.removeprefix(OPERATOR) in LIKES:
            return self._like(inner, "!")
        if isinstance(inner, exp.Between):
            low, high = self._bounds(inner, "<", ">")
            return f"({low} OR {high})"
        if isinstance(inner, exp.In):
            return self._in(inner, "<> ALL")
        return f"(NOT {self.spell(inner, BOOL)})"

    def _is(self, node: exp.Expr) -> str:
        return f"({self.spell(node.this)} IS NULL)"

    def _bounds(self, node: exp.Expr, low_sign: str, high_sign: str) -> list[str]:
        """The two comparisons of BETWEEN."""
        signs = ((node.args["low"], low_sign), (node.args["high"], high_sign))
        pairs = ((self._pair([node.this, bound]), sign) for bound, sign in signs)
        return [f"({left} {sign} {right})" for (left, right), sign in pairs]

    def _between(self, node: exp.Expr) -> str:
        low, high = self._bounds(node, ">=", "<=")
        return f"({low} AND {high})"

    def _in(self, node: exp.Expr, sign: str = "= ANY") -> str:
        if node.args.get("query") or node.args.get("unnest") or not node.expressions:
            raise NoSpellingError
        left, *others = self._pair([node.this, *node.expressions])
        return f"({left} {sign} (ARRAY[{', '.join(others)}]))"

    def _case(self, node: exp.Expr) -> str:
        branches, default = node.args["ifs"], node.args.get("default")
        results = [branch.args["true"] for branch in branches]
        united = self._united([*results, default or exp.Null()])
        words = []
        operand = node.this
        for branch, result in zip(branches, united, strict=False):
            if operand is None:
                test = self.spell(branch.this, BOOL)
            else:
                test = self._pair([operand, branch.this])[1]
            words.append(f"WHEN {test} THEN {result}")
        head = "CASE" if operand is None else f"CASE {self.spell(operand)}"
        return f"{head} {' '.join(words)} ELSE {united[-1]} END"

    def _cast(self, node: exp.Expr) -> str:
        type_, modifiers = node.meta[TYPE]
        inner = self._typed(node.this)
        shown = node.meta[WRITTEN]
        if modifiers and type_ == INTERVAL:
            raise NoSpellingError
        if modifiers:
            name = "character varying" if type_ == STRING else show_type(type_)
            limits = ",".join(map(str, modifiers))
            return f"({self.spell(node.this, type_)})::{name}({limits})"
        if isinstance(node.this, exp.Null):
            return f"NULL::{shown}"
        if casts.is_unknown(inner):
            return constant(str(inner.literal), type_, shown)
        if inner.type == type_:
            return self.spell(node.this)
        return f"({self.spell(node.this)})::{shown}"

    def _array(self, node: exp.Expr) -> str:
        if not node.expressions or isinstance(node.expressions[0], exp.Query):
            raise NoSpellingError
        return f"ARRAY[{', '.join(self._united(node.expressions))}]"

    def _like(self, node: exp.Expr, negation: str = "") -> str:
        left, right = self._pair(node.expressions, STRING)
        return f"({left} {negation}{LIKES[node.name.removeprefix(OPERATOR)]} {right})"

    def _call(self, node: exp.Expr) -> str:
        name, items = node.name, node.expressions
        if name in BARE:
            return BARE[name]
        if name.startswith(OPERATOR):
            return self._operator(node, name.removeprefix(OPERATOR))
        if name.startswith("IS ") and len(items) == 1:
            return f"({self.spell(items[0], BOOL)} {name})"
        if name in {"IS DISTINCT FROM", "IS NOT DISTINCT FROM"}:
            left, right = self._pair(items)
            test = f"({left} IS DISTINCT FROM {right})"
            return f"(NOT {test})" if "NOT" in name else test
        if name in CAPITALS:
            united = self._pair(items) if name == "NULLIF" else self._united(items)
            return f"{name}({', '.join(united)})"
        return self._function(name, items)

    def _operator(self, node: exp.Expr, sign: str) -> str:
        items = node.expressions
        if sign in LIKES:
            return self._like(node)
        if sign.startswith("unary "):
            return f"({sign.removeprefix('unary ')} {self.spell(items[0])})"
        kinds = [self._typed(each).type for each in items]
        if sign in BITWISE:
            left, right = self._pair(items, INT64)
        elif sign in ARITHMETIC and all(k is None or k.code in casts.NUMBERS for k in kinds):
            left, right = self._pair(items)
        elif sign in ARITHMETIC or sign in {"||", *JSON_OPERATORS}:
            left, right = (self.spell(each) for each in items)
        else:
            raise NoSpellingError
        return f"({left} {sign} {right})"

    def _function(self, name: str, items: Sequence[exp.Expr]) -> str:
        shown = name.lower()
        if name == "EXTRACT":
            field = self._typed(items[0]).literal
            return f"EXTRACT({field} FROM {self.spell(items[1])})"
        if name in functions.SIGNATURES:
            typed = [self._typed(each) for each in items]
            types = functions.find_signature(name, typed).argument_types(len(items))
            texts = [self.spell(each, type_) for each, type_ in zip(items, types, strict=True)]
        elif name in functions.CALLS:
            texts = [self.spell(each) for each in items]
        else:
            raise NoSpellingError
        return f"{QUOTE(shown) if shown in KEYWORDS else shown}({', '.join(texts)})"


MAKERS: dict[type[exp.Expr], Callable[[ExpressionSpelling, exp.Expr], str]] = {
    exp.Literal: ExpressionSpelling._literal,
    exp.Neg: ExpressionSpelling._negative,
    exp.Boolean: ExpressionSpelling._boolean,
    exp.Column: ExpressionSpelling._column,
    exp.And: ExpressionSpelling._connector,
    exp.Or: ExpressionSpelling._connector,
    exp.Not: ExpressionSpelling._not,
    exp.Is: ExpressionSpelling._is,
    exp.Between: ExpressionSpelling._between,
    exp.In: ExpressionSpelling._in,
    exp.Case: ExpressionSpelling._case,
    exp.Cast: ExpressionSpelling._cast,
    exp.Array: ExpressionSpelling._array,
    exp.Anonymous: ExpressionSpelling._call,
    **dict.fromkeys(SIGNS, ExpressionSpelling._comparison),
}


def constant(text: str, type_: Type, shown: str = "") -> str:
    """A constant with its type; booleans and numerics with a point need none."""
    if type_ == BOOL:
        return "true" if parse_value(text, type_) else "false"
    if type_ == PG_NUMERIC and text[:1].isdigit() and "." in text:
        return text
    if type_.element is not None and type_ != array(type_.element):
        raise NoSpellingError
    written = text.replace("'", "''")
    escape = "E" if "\\" in text else ""
    if escape:
        written = written.replace("\\", "\\\\")
    if type_.code is TypeCode.INT64:
        written = str(parse_value(text, type_))
    return f"{escape}'{written}'::{shown or show_type(type_)}"


def spell_or_keep(text: str, spell: Callable[[], str]) -> str:
    """The spelling of an expression; its text where there is none, or it is refused anyway."""
    try:
        return spell()
    except (NoSpellingError, SpannerError):
        return text

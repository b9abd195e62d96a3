"""Which rows of each table a statement may read: conditions on keys that its text spells out.

A table's rows that fail a condition of the WHERE clause cannot change the statement's result, so
they need no lock. As in Spanner only conditions count by which a key or an index is searched; a
statement without them scans, and what it scans is locked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from emulator.engine.locks.ranges import Among, Between, Condition
from emulator.sql.compile import read_tree
from emulator.values.requests import Stored
from emulator.values.served_types import SERVED_TYPES
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import Schema, Table

COMPARED = {code for code, served in SERVED_TYPES.items() if served.ordered}
"""Types whose stored forms Python compares as SQLite does."""

LISTED = {TypeCode.INT64, TypeCode.STRING}
"""Types whose arrays hold the same forms as their columns."""

BOUNDS = {exp.GT: "low", exp.GTE: "low", exp.LT: "high", exp.LTE: "high"}
MIRRORED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}

Parameters = Mapping[str, Stored]
Values = Callable[[Parameters], Collection[Stored]]
"""Gives the values of operands, once the parameters (in lower case) are known."""


@dataclass(frozen=True, slots=True)
class Operand:
    """Values that a column is compared with: ``bound`` is "" (equal to one), "low" or "high"."""

    bound: str
    values: Values


@dataclass(frozen=True, slots=True)
class TableConditions:
    """What a statement asks of one table, by column in lower case; without operands it scans."""

    table: str
    operands: tuple[tuple[str, tuple[Operand, ...]], ...] = ()

    def bind(self, params: Parameters) -> tuple[tuple[str, Condition], ...]:
        """The conditions with the values of the parameters."""
        return tuple((column, combine(each, params)) for column, each in self.operands)


def combine(operands: Collection[Operand], params: Parameters) -> Condition:
    """One condition for a column: the values that it must equal, or the bounds."""
    equal = [frozenset(o.values(params)) - {None} for o in operands if not o.bound]
    if equal:
        return Among(frozenset.intersection(*equal))
    bounds = {o.bound: next(iter(o.values(params))) for o in operands}
    if None in bounds.values():
        return Among(frozenset())
    return Between(bounds.get("low"), bounds.get("high"))


def statement_conditions(
    sql: str, schema: Schema, types: Mapping[str, Type], tables: Collection[str]
) -> tuple[TableConditions, ...]:
    """The conditions of each place where a statement reads a table; ``tables`` are all it reads.

    ``types`` are those of the parameters, by name in lower case. A table that the text does not
    show, because a view reads it, is read as a whole.
    """
    tree = read_tree(sql, schema)
    names = {name.casefold() for name in tables}
    hidden = {each.alias.casefold() for each in tree.find_all(exp.CTE)}
    reader = ConditionReader(schema, types, exact_strings="\\" not in sql)
    places: list[TableConditions] = []
    for node in tree.find_all(exp.Table):
        table = schema.find_table(".".join(part.name for part in node.parts))
        written = isinstance(node.parent, exp.Schema | exp.Insert)
        if table is not None and table.name.casefold() not in hidden and not written:
            places.append(reader.table_conditions(node, table))
    shown = {each.table for each in places}
    views = any(
        schema.find_table(".".join(part.name for part in node.parts)) is None
        for node in tree.find_all(exp.Table)
    )
    rest = names if views or names & hidden else names - shown
    return (*places, *(TableConditions(name) for name in sorted(rest)))


class ConditionReader:
    """Reads the conditions of tables out of a statement's tree."""

    def __init__(self, schema: Schema, types: Mapping[str, Type], *, exact_strings: bool) -> None:
        self._schema = schema
        self._types = types
        self._exact_strings = exact_strings

    def table_conditions(self, node: exp.Table, table: Table) -> TableConditions:
        """What is asked of a table at one place."""
        name = table.name.casefold()
        statement, alone = owning_statement(node)
        if statement is None or node.args.get("sample"):
            return TableConditions(name)
        alias = (node.alias or node.name).casefold()
        operands: dict[str, list[Operand]] = {}
        for condition in conjuncts(statement.args.get("where")):
            pair = self._operand(condition, table, alias, alone)
            if pair is not None:
                operands.setdefault(pair[0], []).extend(pair[1])
        kept = searchable(self._schema, table, operands)
        return TableConditions(
            name, tuple((each, tuple(operands[each])) for each in operands if each in kept)
        )

    def _operand(
        self, condition: exp.Expr, table: Table, alias: str, alone: bool
    ) -> tuple[str, list[Operand]] | None:
        """The column and the operands of a condition; None when it says nothing about a column."""

        def column(node: exp.Expr | None) -> tuple[str, Type] | None:
            return find_column(node, table, alias, alone)

        if isinstance(condition, exp.In):
            target = column(condition.this)
            return target and self._listed(condition, *target)
        if isinstance(condition, exp.Between):
            target = column(condition.this)
            low, high = condition.args.get("low"), condition.args.get("high")
            return target and self._pair(target, (("low", low), ("high", high)))
        kind = type(condition)
        if kind is not exp.EQ and kind not in BOUNDS:
            return None
        target, other = column(condition.this), condition.expression
        if target is None:
            target, other = column(condition.expression), condition.this
            kind = MIRRORED.get(kind, kind)
        return target and self._pair(target, ((BOUNDS.get(kind, ""), other),))

    def _pair(
        self, target: tuple[str, Type], bounds: tuple[tuple[str, exp.Expr | None], ...]
    ) -> tuple[str, list[Operand]] | None:
        """Operands of one value each."""
        operands: list[Operand] = []
        for bound, node in bounds:
            values = self._value(node, target[1])
            if values is None:
                return None
            operands.append(Operand(bound, values))
        return target[0], operands

    def _listed(
        self, condition: exp.In, column: str, type_: Type
    ) -> tuple[str, list[Operand]] | None:
        """The operand of IN, over values or over an array that is a parameter."""
        unnest = condition.args.get("unnest")
        if unnest is not None:
            values = self._array(unnest, type_)
            return None if values is None else (column, [Operand("", values)])
        items = [self._value(each, type_) for each in condition.expressions]
        if not items or condition.args.get("query") is not None:
            return None
        known = [each for each in items if each is not None]
        if len(known) < len(items):
            return None
        return column, [Operand("", lambda params: [v for each in known for v in each(params)])]

    def _value(self, node: exp.Expr | None, type_: Type) -> Values | None:
        """The value of a literal or of a parameter of the column's type."""
        node = node.unnest() if node is not None else None
        if isinstance(node, exp.Parameter):
            name = node.name.casefold()
            declared = self._types.get(name)
            if declared is None or declared.code is not type_.code:
                return None
            return lambda params: (params[name],)
        value = literal_value(node, type_, self._exact_strings)
        return None if value is None else lambda _params: (value,)

    def _array(self, unnest: exp.Expr, type_: Type) -> Values | None:
        """The elements of an array that is a parameter."""
        node = unnest.expressions[0] if len(unnest.expressions) == 1 else None
        if not isinstance(node, exp.Parameter) or type_.code not in LISTED:
            return None
        name = node.name.casefold()
        declared = self._types.get(name)
        if declared is None or declared.element is None or declared.element.code is not type_.code:
            return None
        return lambda params: elements(params[name])


def elements(value: Stored) -> list[Stored]:
    """The elements of an array in its stored form."""
    return list(json.loads(value)) if isinstance(value, str) else []


def literal_value(node: exp.Expr | None, type_: Type, exact_strings: bool) -> Stored:
    """The stored form of a literal of the column's type, or None."""
    negative = isinstance(node, exp.Neg)
    if negative and node is not None:
        node = node.this
    if isinstance(node, exp.Boolean) and type_.code is TypeCode.BOOL and not negative:
        return int(node.this)
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        plain = type_.code is TypeCode.STRING and exact_strings and not negative
        return str(node.this) if plain else None
    text = str(node.this)
    if type_.code is not TypeCode.INT64 or not text.isascii() or not text.isdigit():
        return None
    return -int(text) if negative else int(text)


def owning_statement(node: exp.Table) -> tuple[exp.Expr | None, bool]:
    """The statement whose WHERE clause judges a table's rows, and whether it has no other source.

    None for a table in parentheses or in another place that a WHERE clause may not reach.
    """
    parent = node.parent
    if isinstance(parent, exp.Update | exp.Delete):
        return parent, True
    if not isinstance(parent, exp.From | exp.Join) or not isinstance(parent.parent, exp.Select):
        return None, False
    select = parent.parent
    alone = isinstance(parent, exp.From) and not select.args.get("joins")
    return select, alone and not select.args.get("laterals")


def conjuncts(where: exp.Expr | None) -> Iterator[exp.Expr]:
    """The conditions that must all hold."""
    waiting = [where.this] if where is not None else []
    while waiting:
        node = waiting.pop().unnest()
        if isinstance(node, exp.And):
            waiting += [node.this, node.expression]
        else:
            yield node


def find_column(
    node: exp.Expr | None, table: Table, alias: str, alone: bool
) -> tuple[str, Type] | None:
    """The column of a table that a node names, with its type, when it can be compared."""
    node = node.unnest() if node is not None else None
    if not isinstance(node, exp.Column) or node.args.get("db"):
        return None
    if node.table.casefold() != alias if node.table else not alone:
        return None
    column = table.column(node.name)
    if column is None or column.type.code not in COMPARED:
        return None
    return column.name.casefold(), column.type


def searchable(
    schema: Schema, table: Table, operands: Mapping[str, Collection[Operand]]
) -> set[str]:
    """The columns by which a key or an index is searched: those it begins with, up to a bound."""
    keys = [table.primary_key, *(index.parts for index in schema.indexes_of(table.name))]
    kept: set[str] = set()
    for parts in keys:
        for part in parts:
            column = part.column.casefold()
            if column not in operands:
                break
            kept.add(column)
            if all(operand.bound for operand in operands[column]):
                break
    return kept

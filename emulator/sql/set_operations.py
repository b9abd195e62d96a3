"""UNION, INTERSECT and EXCEPT, of all rows or of the distinct ones."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.aggregates import UNGROUPABLE
from emulator.sql.coerce import unify
from emulator.sql.compiler import refuse_other_clauses
from emulator.sql.scope import Context
from emulator.sql.types import Columns, Output, Typed, distinct_names, name_of, refuse_interval
from emulator.values.sqlite_text import quote_name

Compiled = tuple[str, Columns]
KNOWN = ("this", "expression", "distinct", "with_", "with", "order", "limit", "offset")


def combine_queries(
    node: exp.SetOperation, left: Compiled, right: Compiled, context: Context
) -> Compiled:
    """Both queries as one; the names are those of the first, the types are what both can be."""
    refuse_other_clauses(node, *KNOWN)
    word = type(node).__name__.upper()
    mode = "DISTINCT" if node.args.get("distinct") else "ALL"
    if len(left[1]) != len(right[1]):
        raise errors.invalid_argument(
            f"Queries in {word} {mode} have mismatched column count; query 1 has {len(left[1])}"
            f" columns, query 2 has {len(right[1])}"
        )
    pairs = list(zip(outer_columns(left[1]), outer_columns(right[1]), strict=True))
    columns, first, second = [], [], []
    for number, (mine, theirs) in enumerate(pairs, start=1):
        where = f"column {number} in {word} {mode}"
        (converted, other), type_ = unify([mine, theirs], context, where)
        if word != "UNION" or mode != "ALL":
            refuse_interval(type_, f"{word} {mode}")
        if type_.code in UNGROUPABLE and (word != "UNION" or mode != "ALL"):
            raise errors.invalid_argument(
                f"Column {number} in {word} {mode} has type {name_of(type_)} that does not support"
                " set operation comparisons"
            )
        base = mine if mine.type is not None or mine.parameter else theirs
        unknown = mine.type is None and theirs.type is None
        typed = replace(
            base, sql=converted.sql, type=None if unknown else type_, literal=None, parts=None
        )
        columns.append(Output(mine.column, replace(typed, column=mine.column)))
        first.append(converted.sql)
        second.append(other.sql)
    names = list(map(quote_name, distinct_names([each.name for each in columns])))
    operands = [convert_operand(left[0], first, names), convert_operand(right[0], second, names)]
    return join_operands(word, mode, operands, names), tuple(columns)


def outer_columns(columns: Columns) -> list[Typed]:
    """The columns as a query around theirs sees them; literals still convert as such."""
    names = distinct_names([each.name for each in columns])
    return [
        replace(
            each.typed,
            sql=quote_name(name),
            column=each.name,
            parts=each.typed.parts if each.typed.parts == () else None,
        )
        for name, each in zip(names, columns, strict=True)
    ]


def convert_operand(sql: str, items: list[str], names: list[str]) -> str:
    """A query with its columns converted and named."""
    listed = ", ".join(f"{item} AS {name}" for item, name in zip(items, names, strict=True))
    return f"SELECT {listed} FROM ({sql})"


def join_operands(word: str, mode: str, operands: list[str], names: list[str]) -> str:
    """The operation. INTERSECT ALL and EXCEPT ALL number the repetitions of a row."""
    if mode == "DISTINCT":
        return f" {word} ".join(operands)
    if word == "UNION":
        return " UNION ALL ".join(operands)
    listed = ", ".join(names)
    number = f'row_number() OVER (PARTITION BY {listed}) AS "$row"'
    counted = [f"SELECT {listed}, {number} FROM ({each})" for each in operands]
    return f"SELECT {listed} FROM ({f' {word} '.join(counted)})"

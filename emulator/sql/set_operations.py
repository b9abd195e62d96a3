"""UNION, INTERSECT and EXCEPT, of all rows or of the distinct ones."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.aggregates import UNGROUPABLE
from emulator.sql.coerce import unify
from emulator.sql.comparison import to_comparable
from emulator.sql.compiler import refuse_other_clauses
from emulator.sql.composites import field_of
from emulator.sql.scope import Context
from emulator.sql.types import Columns, Output, Typed, distinct_names, name_of, refuse_interval
from emulator.values.sqlite_text import quote_name
from emulator.values.types import INTERVAL, PG_NUMERIC
from spanner_schema.model.column_types import Type, TypeCode

KEYED = {INTERVAL, PG_NUMERIC}
Compiled = tuple[str, Columns]
KNOWN = ("this", "expression", "distinct", "with_", "with", "order", "limit", "offset")


def operands_of(node: exp.SetOperation) -> list[exp.Expr]:
    """The queries of a chain such as a UNION ALL b UNION ALL c."""
    chain: list[exp.Expr] = []
    current: exp.Expr = node
    while same_operation(current, node):
        chain.append(current.expression)
        current = current.this
    return [current, *reversed(chain)]


def same_operation(current: exp.Expr, node: exp.SetOperation) -> bool:
    """Whether a query goes on with the chain: the same operation, and nothing else."""
    if type(current) is not type(node) or (current is not node and is_exact(current)):
        return False
    own = ("with_", "with", "order", "limit", "offset")
    plain = current is node or not any(current.args.get(each) for each in own)
    return plain and bool(current.args.get("distinct")) == bool(node.args.get("distinct"))


def is_exact(node: exp.Expr) -> bool:
    """INTERSECT ALL and EXCEPT ALL, which are made of two queries at a time."""
    return not isinstance(node, exp.Union) and not node.args.get("distinct")


def combine_queries(node: exp.SetOperation, operands: list[Compiled], context: Context) -> Compiled:
    """All queries as one; the names are those of the first, the types are what all can be."""
    refuse_other_clauses(node, *KNOWN)
    word = type(node).__name__.upper()
    mode = "DISTINCT" if node.args.get("distinct") else "ALL"
    widths = [len(columns) for _, columns in operands]
    for number, width in enumerate(widths, start=1):
        if width != widths[0]:
            raise errors.invalid_argument(
                f"Queries in {word} {mode} have mismatched column count; query 1 has {widths[0]}"
                f" columns, query {number} has {width}"
            )
    columns: list[Output] = []
    converted: list[list[str]] = [[] for _ in operands]
    for number, items in enumerate(
        zip(*(outer_columns(each) for _, each in operands), strict=True), start=1
    ):
        output, texts = combine_columns(list(items), f"{word} {mode}", number, context)
        columns.append(output)
        for listed, text in zip(converted, texts, strict=True):
            listed.append(text)
    names = list(map(quote_name, distinct_names([each.name for each in columns])))
    texts = [
        convert_operand(sql, listed, names)
        for (sql, _), listed in zip(operands, converted, strict=True)
    ]
    if mode == "DISTINCT" and any(each.type in KEYED for each in columns):
        types = [each.type for each in columns]
        return distinct_by_keys(texts, names, types), tuple(columns)
    return join_operands(word, mode, texts, names), tuple(columns)


def combine_columns(
    items: list[Typed], operation: str, number: int, context: Context
) -> tuple[Output, list[str]]:
    """One column of all queries: what it is in the result, and each converted to its type."""
    converted, type_ = unify(items, context, f"column {number} in {operation}")
    if operation != "UNION ALL":
        if type_.code in UNGROUPABLE:
            raise errors.invalid_argument(
                f"Column {number} in {operation} has type {name_of(type_)} that does not support"
                " set operation comparisons"
            )
        if not operation.startswith("UNION"):
            refuse_interval(type_, operation)
            if type_ == PG_NUMERIC:
                raise errors.unimplemented(f"numeric in {operation}")
    known = [each for each in items if each.type is not None or each.parameter]
    base = known[0] if known else items[0]
    unknown = all(each.type is None for each in items)
    typed = replace(
        base,
        sql=converted[0].sql,
        type=None if unknown else type_,
        literal=None,
        parts=None,
        column=items[0].column,
        may_be_null=any(each.may_be_null for each in items),
    )
    return Output(items[0].column, typed, context.null_type), [each.sql for each in converted]


def distinct_by_keys(operands: list[str], names: list[str], types: list[Type]) -> str:
    """UNION DISTINCT where equal values (a month, 30 days) are one."""
    keys = [to_comparable(Typed(name, type_)).sql for name, type_ in zip(names, types, strict=True)]
    together = " UNION ALL ".join(operands)
    return f"SELECT {', '.join(names)} FROM ({together}) GROUP BY {', '.join(keys)}"


def outer_columns(columns: Columns) -> list[Typed]:
    """The columns as a query around theirs sees them; literals still convert as such."""
    names = distinct_names([each.name for each in columns])
    return [
        replace(
            each.typed,
            sql=quote_name(name),
            column=each.name,
            parts=outer_parts(each.typed, quote_name(name)),
        )
        for name, each in zip(names, columns, strict=True)
    ]


def outer_parts(item: Typed, name: str) -> tuple[Typed, ...] | None:
    """The parts of a column as the query around sees them: which fields are NULL themselves."""
    if not item.parts or item.type is None or item.type.code is not TypeCode.STRUCT:
        return item.parts if item.parts == () else None
    whole = Typed(name, item.type)
    return tuple(
        replace(field_of(whole, number), type=part.type, parts=None)
        for number, part in enumerate(item.parts)
    )


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

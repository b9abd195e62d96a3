"""Whether a query can be answered partition by partition: one table, row by row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from emulator import errors
from emulator.sql.aggregates import has_aggregate
from emulator.sql.compile import compile_statement, read_tree
from emulator.sql.statements import CompiledQuery
from emulator.values.sqlite_text import quote_name
from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Index, Schema, Table

REFUSED = ("with_", "with", "group", "having", "qualify", "order", "limit", "offset", "distinct")


@dataclass(frozen=True, slots=True)
class PartitionedTable:
    """The table, and the forced index, by whose keys a query can be cut; ``one_row`` says that its
    WHERE gives each column of the primary key a value."""

    table: str
    index: str | None
    one_row: bool


def find_partitioned_table(sql: str, schema: Schema, types: Mapping[str, Type]) -> PartitionedTable:
    """By what the query can be cut.

    Raises INVALID_ARGUMENT for a query whose rows do not each come from one row of one table.
    """
    sources: list[tuple[Table, Index | None]] = []

    def note_source(table: Table, index: Index | None, alias: str) -> str:
        sources.append((table, index))
        return f"{quote_name(table.name)} AS {quote_name(alias)}"

    tree = read_tree(sql, schema)
    statement = compile_statement(sql, schema, types, note_source)
    plain = (
        isinstance(statement, CompiledQuery)
        and not (statement.views or statement.functions)
        and is_row_by_row(tree)
    )
    if not plain or len(sources) != 1:
        raise errors.invalid_argument(
            "Query is not root partitionable since it does not have a DistributedUnion at the "
            "root. Please check the conditions for a query to be root-partitionable."
        )
    ((table, index),) = sources
    key = {part.column.casefold() for part in table.primary_key}
    one_row = key <= set(list_fixed_columns(tree.args.get("where")))
    return PartitionedTable(table.name, index.name if index is not None else None, one_row)


def list_fixed_columns(where: exp.Where | None) -> Iterator[str]:
    """The columns, in lower case, that a WHERE compares with a value: ``a = @p AND b = 1``."""
    condition = where.this if where is not None else None
    for each in condition.flatten() if isinstance(condition, exp.And) else [condition]:
        if isinstance(each, exp.EQ):
            for column, value in ((each.left, each.right), (each.right, each.left)):
                if isinstance(column, exp.Column) and value.find(exp.Column) is None:
                    yield column.name.casefold()


def is_row_by_row(tree: exp.Expr) -> bool:
    """Whether a query is a plain SELECT from a table that never combines several rows."""
    if not isinstance(tree, exp.Select) or any(tree.args.get(name) for name in REFUSED):
        return False
    start = tree.args.get("from_")
    if start is None or not isinstance(start.this, exp.Table):
        return False
    if any(select is not tree for select in tree.find_all(exp.Select)):
        return False
    if any(has_aggregate(value) for value in tree.expressions):
        return False
    return tree.find(exp.AggFunc, exp.Window, exp.Join, exp.TableSample) is None

"""INSERT, UPDATE and DELETE of libpg_query's trees -> statements that the compiler knows."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.parsed import ConflictClause, Parsed
from emulator.sql.postgres.expression_trees import ExpressionTrees, Query
from emulator.sql.postgres.nodes import Node
from emulator.sql.postgres.source_trees import SourceTrees


class DmlTrees:
    """Makes statements; ``query`` makes the tree of what INSERT reads."""

    def __init__(self, sources: SourceTrees, expressions: ExpressionTrees, query: Query) -> None:
        self._sources = sources
        self._expressions = expressions
        self._query = query

    def insert(self, node: Node) -> Parsed:
        """INSERT, with its ON CONFLICT and RETURNING."""
        table = self._target_table(node)
        named = node.nodes("cols")
        columns = [each.text("name") for each in named]
        for each in named:
            each.finish()
        has_list = bool(columns)
        columns = columns or self._sources.all_columns(table)
        if node.get("selectStmt") is None:
            raise errors.unimplemented("INSERT ... DEFAULT VALUES")
        source = node.node("selectStmt")
        if source.get("valuesLists"):
            rows = [
                exp.Tuple(expressions=self._expressions.expressions(row.nodes("items")))
                for row in source.nodes("valuesLists")
            ]
            values: exp.Expr = exp.Values(expressions=rows)
            source.finish()
        else:
            values = self._query(source)
        if not has_list:
            columns = columns[: count_values(values, len(columns))]
        self._sources.expect_columns(table, columns)
        target = exp.Schema(
            this=table, expressions=[exp.to_identifier(name, quoted=True) for name in columns]
        )
        clause = self._on_conflict(node, table)
        returning = self._returning(node)
        node.finish()
        tree = exp.Insert(this=target, expression=values)
        return Parsed(tree, returning=returning, on_conflict=clause)

    def update(self, node: Node) -> Parsed:
        """UPDATE."""
        table = self._target_table(node)
        tree = exp.Update(
            this=table,
            expressions=self._assignments(node, table),
            where=self._where(node),
        )
        returning = self._returning(node)
        node.finish()
        return Parsed(tree, returning=returning)

    def delete(self, node: Node) -> Parsed:
        """DELETE."""
        tree = exp.Delete(this=self._target_table(node), where=self._where(node))
        returning = self._returning(node)
        node.finish()
        return Parsed(tree, returning=returning)

    def _target_table(self, node: Node) -> exp.Table:
        relation = node.part("relation", "RangeVar")
        assert relation is not None
        return self._sources.table(relation)

    def _on_conflict(self, node: Node, table: exp.Table) -> ConflictClause | None:
        clause = node.part("onConflictClause")
        if clause is None:
            return None
        columns: list[str] = []
        constraint = ""
        target = clause.part("infer")
        if target is not None:
            constraint = target.text("conname")
            for each in target.nodes("indexElems"):
                columns.append(each.text("name"))
                each.ignore("ordering", "nulls_ordering")
                each.finish()
            target.finish()
        update = None
        if clause.text("action") == "ONCONFLICT_UPDATE":
            update = exp.Update(
                this=exp.Table(this=exp.to_identifier("$target")),
                expressions=self._assignments(clause, table),
            )
            where = clause.get("whereClause")
            if where is not None:
                update.set("where", exp.Where(this=self._expressions.expression(Node.of(where))))
        clause.finish()
        self._sources.expect_columns(table, columns)
        return ConflictClause(tuple(columns), constraint, update)

    def _assignments(self, node: Node, table: exp.Table) -> list[exp.Expr]:
        pairs: list[exp.Expr] = []
        self._sources.expect_columns(
            table, [each.text("name") for each in node.nodes("targetList")]
        )
        for each in node.nodes("targetList"):
            column = exp.Column(this=exp.to_identifier(each.text("name"), quoted=True))
            value = self._expressions.expression(each.node("val"))
            each.finish()
            pairs.append(exp.EQ(this=column, expression=value))
        return pairs

    def _where(self, node: Node) -> exp.Where:
        where = node.get("whereClause")
        if where is None:
            return exp.Where(this=exp.Boolean(this=True))
        return exp.Where(this=self._expressions.expression(Node.of(where)))

    def _returning(self, node: Node) -> tuple[exp.Expr, ...] | None:
        items = node.nodes("returningList")
        return tuple(map(self._expressions.target, items)) if items else None


def count_values(values: exp.Expr, columns: int) -> int:
    """How many columns INSERT without a list of them writes: as many as there are values.

    Raises INVALID_ARGUMENT for rows of VALUES that are not equally long.
    """
    if isinstance(values, exp.Values):
        lengths = {len(row.expressions) for row in values.expressions}
        if len(lengths) > 1:
            raise errors.invalid_argument("VALUES lists must all be the same length")
        return lengths.pop()
    items = values.expressions if isinstance(values, exp.Select) else []
    return columns if any(each.is_star for each in items) else len(items) or columns

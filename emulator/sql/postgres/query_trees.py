"""Statements of libpg_query's trees -> trees that the compiler knows."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from emulator import errors
from emulator.sql.functions.numbers import INT64_MAX
from emulator.sql.parsed import Parsed
from emulator.sql.postgres.dml_trees import DmlTrees
from emulator.sql.postgres.expression_trees import ExpressionTrees
from emulator.sql.postgres.hints import StatementHints
from emulator.sql.postgres.nodes import Node
from emulator.sql.postgres.parser import parse_expression, parse_statement
from emulator.sql.postgres.source_trees import SourceTrees
from spanner_schema.model.schema import Schema

SETS = {"SETOP_UNION": exp.Union, "SETOP_INTERSECT": exp.Intersect, "SETOP_EXCEPT": exp.Except}


def read_statement(sql: str, schema: Schema) -> Parsed:
    """A query or DML statement. Raises INVALID_ARGUMENT and UNIMPLEMENTED."""
    return QueryTrees(sql, schema).statement(Node.of(parse_statement(sql)))


def read_expression(text: str, schema: Schema) -> exp.Expr:
    """A scalar expression of a schema."""
    trees = QueryTrees(text, schema)
    return trees.expressions.expression(Node.of(parse_expression(text)))


class QueryTrees:
    """Makes the tree of one statement."""

    def __init__(self, sql: str, schema: Schema) -> None:
        self._hints = StatementHints(sql)
        self.expressions = ExpressionTrees(self.query)
        self._sources = SourceTrees(schema, self._hints, self.expressions, self.query)
        dml = DmlTrees(self._sources, self.expressions, self.query)
        self._readers: dict[str, Callable[[Node], Parsed]] = {
            "InsertStmt": dml.insert,
            "UpdateStmt": dml.update,
            "DeleteStmt": dml.delete,
            "SelectStmt": lambda node: Parsed(self.query(node)),
        }

    def statement(self, node: Node) -> Parsed:
        """A statement, with its hints."""
        read = self._readers.get(node.kind)
        if node.kind == "CallStmt":
            raise errors.unimplemented("CALL")
        if read is None:
            kind = node.kind.removesuffix("Stmt")
            raise errors.invalid_argument(f"Statement not supported: {kind}")
        parsed = read(node)
        self._hints.move_to_statement(parsed)
        return parsed

    def query(self, node: Node) -> exp.Expr:
        """A SELECT, a VALUES or a set operation, with its WITH, ORDER BY and LIMIT."""
        if node.kind != "SelectStmt":
            raise errors.unimplemented(f"{node.kind.removesuffix('Stmt').upper()} inside a query")
        operation = node.text("op")
        with_clause = self._with(node)
        if operation in SETS:
            tree = self._set_operation(node, SETS[operation])
        else:
            tree = self._select(node)
        if with_clause is not None:
            tree.set("with_", with_clause)
        keys = self.expressions.sort_keys(node.nodes("sortClause"))
        if keys:
            tree.set("order", exp.Order(expressions=keys))
        self._limit(node, tree)
        for each in node.nodes("lockingClause"):
            if each.text("strength") != "LCS_FORUPDATE" or each.get("lockedRels"):
                raise errors.unimplemented("A lock other than FOR UPDATE of every table")
            # A transaction that writes locks what it reads anyway.
            each.ignore("waitPolicy")
            each.finish()
        node.finish()
        return tree

    def _with(self, node: Node) -> exp.With | None:
        clause = node.part("withClause")
        if clause is None:
            return None
        if clause.get("recursive"):
            raise errors.unsupported("Recursive WITH expressions are not supported")
        tables = []
        for each in clause.nodes("ctes"):
            if each.get("aliascolnames"):
                raise errors.unimplemented("WITH with names of columns")
            each.ignore("ctematerialized")
            name = exp.to_identifier(each.text("ctename"), quoted=True)
            query = self.query(each.node("ctequery"))
            each.finish()
            tables.append(exp.CTE(this=query, alias=exp.TableAlias(this=name)))
        clause.finish()
        return exp.With(expressions=tables)

    def _set_operation(self, node: Node, kind: type[exp.SetOperation]) -> exp.Expr:
        sides = []
        for name in ("larg", "rarg"):
            side = node.part(name, "SelectStmt")
            assert side is not None
            query = self.query(side)
            own = ("order", "limit", "offset", "with_")
            sides.append(exp.Subquery(this=query) if any(query.args.get(n) for n in own) else query)
        return kind(this=sides[0], expression=sides[1], distinct=not node.get("all"))

    def _select(self, node: Node) -> exp.Expr:
        if node.get("valuesLists"):
            raise errors.unsupported("VALUES lists in FROM clause are not supported")
        select = exp.Select(
            expressions=[self.expressions.target(each) for each in node.nodes("targetList")]
        )
        distinct = node.get("distinctClause")
        if distinct is not None:
            if any(distinct):
                raise errors.unsupported("Statements with DISTINCT ON clauses are not supported")
            select.set("distinct", exp.Distinct())
        sources = node.nodes("fromClause")
        if sources:
            self._sources.read_from(select, sources)
        where = node.get("whereClause")
        if where is not None:
            select.set("where", exp.Where(this=self.expressions.expression(Node.of(where))))
        groups = [part for each in node.nodes("groupClause") for part in grouping_parts(each)]
        if groups:
            select.set("group", exp.Group(expressions=self.expressions.expressions(groups)))
        having = node.get("havingClause")
        if having is not None:
            select.set("having", exp.Having(this=self.expressions.expression(Node.of(having))))
        return select

    def _limit(self, node: Node, tree: exp.Expr) -> None:
        if node.text("limitOption") == "LIMIT_OPTION_WITH_TIES":
            raise errors.unsupported("Statements with FETCH WITH TIES are not supported")
        count, offset = node.get("limitCount"), node.get("limitOffset")
        rows = None if count is None else self.expressions.expression(Node.of(count))
        if isinstance(rows, exp.Null):
            rows = None
        if offset is not None:
            skipped = self.expressions.expression(Node.of(offset))
            tree.set("offset", exp.Offset(expression=skipped))
            rows = rows if rows is not None else exp.Literal.number(str(INT64_MAX))
        if rows is not None:
            tree.set("limit", exp.Limit(expression=rows))


def grouping_parts(node: Node) -> list[Node]:
    """An element of GROUP BY: an expression, or several in parentheses."""
    if node.kind == "GroupingSet":
        kind = node.text("kind").removeprefix("GROUPING_SET_")
        raise errors.unimplemented(f"GROUP BY with a set of the kind {kind}")
    if node.kind != "RowExpr":
        return [node]
    node.ignore("row_format")
    parts = node.nodes("args")
    node.finish()
    return parts

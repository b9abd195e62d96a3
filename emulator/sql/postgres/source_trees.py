"""What FROM, INSERT, UPDATE and DELETE name in libpg_query's trees -> tables, joins, subqueries."""

from __future__ import annotations

from sqlglot import exp

from emulator import errors
from emulator.sql.postgres.expression_trees import ExpressionTrees, Query
from emulator.sql.postgres.hints import StatementHints
from emulator.sql.postgres.nodes import Node
from emulator.values.postgres_tables import POSTGRES_VIEWS
from spanner_schema.model.schema import Schema

SIDES = {"JOIN_INNER": "", "JOIN_LEFT": "LEFT", "JOIN_RIGHT": "RIGHT", "JOIN_FULL": "FULL"}
SET_FUNCTIONS = {
    "generate_series": "GENERATE_SERIES",
    "jsonb_array_elements": "JSONB_ARRAY_ELEMENTS",
}
"""Functions in FROM that give rows, and what gives an array of them."""
SYSTEM_SCHEMAS = {"information_schema", "pg_catalog", "spanner_sys"}


class SourceTrees:
    """Makes trees of sources of rows; ``query`` makes those of the queries among them."""

    def __init__(
        self, schema: Schema, hints: StatementHints, expressions: ExpressionTrees, query: Query
    ) -> None:
        self._schema = schema
        self._hints = hints
        self._expressions = expressions
        self._query = query

    def read_from(self, select: exp.Expr, sources: list[Node]) -> None:
        """Gives SELECT its FROM: what stands between commas is joined."""
        first, joins = self._source(sources[0])
        for each in sources[1:]:
            source, inner = self._source(each)
            if inner:
                source.set("joins", inner)
                source = exp.Subquery(this=source)
            joins.append(exp.Join(this=source, kind="CROSS"))
        select.set("from_", exp.From(this=first))
        if joins:
            select.set("joins", joins)

    def table(self, node: Node) -> exp.Table:
        """A table with its alias and its hints."""
        owner, name = node.text("schemaname"), node.text("relname")
        if node.get("catalogname"):
            raise errors.unimplemented("A name with a catalog")
        owner = "" if owner == "public" else owner
        if owner in SYSTEM_SCHEMAS and f"{owner}.{name}".upper() not in POSTGRES_VIEWS:
            raise errors.unimplemented(f"the table {owner}.{name}")
        table = exp.Table(this=exp.to_identifier(name, quoted=True))
        if owner:
            table.set("db", exp.to_identifier(owner, quoted=True))
        alias = self._alias(node)
        if alias is not None:
            table.set("alias", alias)
        self._hints.move_to_table(table, node.location)
        node.ignore("inh", "relpersistence")
        node.finish()
        return table

    def all_columns(self, node: exp.Table, *, generated: bool = False) -> list[str]:
        """The columns of INSERT without a list; with those that are ``generated``, of ``*``."""
        table = self._schema.find_table(".".join(part.name for part in node.parts))
        if table is None:
            return []
        return [
            c.name for c in table.columns if (generated or c.generated is None) and not c.hidden
        ]

    def expect_columns(self, node: exp.Table, names: list[str]) -> None:
        """Raises INVALID_ARGUMENT for a column that has another name, if only by its case."""
        table = self._schema.find_table(".".join(part.name for part in node.parts))
        if table is None:
            return
        known = {column.name for column in table.columns}
        for name in names:
            if name not in known:
                raise errors.invalid_argument(
                    f'column "{name}" of relation "{table.name}" does not exist'
                )

    def _source(self, node: Node) -> tuple[exp.Expr, list[exp.Join]]:
        """A source of rows, and what is joined to it."""
        if node.kind != "JoinExpr":
            return self._single_source(node), []
        kind = node.text("jointype")
        if kind not in SIDES or node.get("isNatural") or node.get("alias"):
            raise errors.unsupported("NATURAL joins, and joins with an alias, are not supported")
        left, joins = self._source(node.node("larg"))
        right, inner = self._source(node.node("rarg"))
        if inner:
            right.set("joins", inner)
            right = exp.Subquery(this=right)
        join = exp.Join(this=right)
        if SIDES[kind]:
            join.set("side", SIDES[kind])
        condition, using = node.get("quals"), node.names("usingClause")
        if condition is not None:
            join.set("on", self._expressions.expression(Node.of(condition)))
        elif using:
            join.set("using", [exp.to_identifier(name, quoted=True) for name in using])
        else:
            join.set("kind", "CROSS")
        node.ignore("rtindex")
        node.finish()
        return left, [*joins, join]

    def _single_source(self, node: Node) -> exp.Expr:
        if node.kind == "RangeVar":
            return self._renamed_table(node)
        if node.kind == "RangeSubselect":
            if node.get("lateral"):
                raise errors.unsupported("Lateral subqueries are not supported")
            query = self._query(node.node("subquery"))
            rename_columns(query, node.part("alias", "Alias"))
            alias = self._alias(node)
            node.finish()
            return exp.Subquery(this=query, alias=alias)
        if node.kind == "RangeFunction":
            return self._function_source(node)
        raise errors.unimplemented(f"{node.kind} in FROM")

    def _alias(self, node: Node) -> exp.TableAlias | None:
        alias = node.part("alias", "Alias")
        if alias is None:
            return None
        alias.ignore("colnames")
        return exp.TableAlias(this=exp.to_identifier(alias.text("aliasname"), quoted=True))

    def _function_source(self, node: Node) -> exp.Expr:
        """unnest(array) [WITH ORDINALITY] [AS alias [(column)]]."""
        functions = node.nodes("functions")
        called = functions[0].nodes("items")[0]
        names = called.names("funcname")
        function = names[-1] if names[:-1] in ([], ["pg_catalog"]) else ".".join(names)
        if len(functions) != 1:
            raise errors.unsupported(
                "UNNEST of multiple arrays and ROWS FROM expressions are not supported"
            )
        if function not in {"unnest", *SET_FUNCTIONS}:
            raise errors.invalid_argument("Unsupported function call in FROM clause")
        arguments = self._expressions.expressions(called.nodes("args"))
        if len(arguments) != 1 and function == "unnest":
            raise errors.unsupported("UNNEST of multiple arrays is not supported")
        if function in SET_FUNCTIONS:
            arguments = [exp.Anonymous(this=SET_FUNCTIONS[function], expressions=arguments)]
        if node.get("ordinality"):
            raise errors.unsupported("WITH ORDINALITY is not supported")
        alias = node.part("alias", "Alias")
        name = alias.text("aliasname") if alias is not None else function
        columns = alias.names("colnames") if alias is not None else []
        node.ignore("lateral")
        node.finish()
        if len(columns) > 1:
            raise errors.invalid_argument(
                f'table "{name}" has 1 columns available but {len(columns)} columns specified'
            )
        column = exp.to_identifier(columns[0] if columns else name, quoted=True)
        rows = exp.TableAlias(this=exp.to_identifier(name, quoted=True), columns=[column])
        return exp.Unnest(expressions=arguments, alias=rows)

    def _renamed_table(self, node: Node) -> exp.Expr:
        """A table; with names for its columns it is a query of them."""
        alias = node.part("alias", "Alias")
        names = alias.names("colnames") if alias is not None else []
        table = self.table(node)
        if not names or alias is None:
            return table
        columns = self.all_columns(table, generated=True)
        if not columns:
            raise errors.unimplemented("Names of columns in the alias of a view or of WITH")
        table.set("alias", None)
        items: list[exp.Expr] = [
            exp.Column(this=exp.to_identifier(column, quoted=True)) for column in columns
        ]
        query = exp.Select(expressions=items)
        query.set("from_", exp.From(this=table))
        rename_columns(query, alias)
        owner = exp.to_identifier(alias.text("aliasname"), quoted=True)
        return exp.Subquery(this=query, alias=exp.TableAlias(this=owner))


def rename_columns(query: exp.Expr, alias: Node | None) -> None:
    """(query) AS alias(a, b): the columns of the query get the names."""
    names = alias.names("colnames") if alias is not None else []
    if not names:
        return
    first = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    items = first.expressions
    if any(isinstance(each, exp.Star) or isinstance(each.this, exp.Star) for each in items):
        raise errors.unimplemented("An alias with names of columns of SELECT *")
    if len(names) > len(items):
        raise errors.invalid_argument(
            f"the query has {len(items)} columns available but {len(names)} columns specified"
        )
    renamed = [
        exp.Alias(this=each.unalias(), alias=exp.to_identifier(name, quoted=True))
        for each, name in zip(items, names, strict=False)
    ]
    first.set("expressions", [*renamed, *items[len(names) :]])

"""Statements of libpg_query's trees -> trees that the compiler knows."""

from __future__ import annotations

import re

from sqlglot import exp

from ddl.model.schema import Schema
from ddl.syntax.dialect import HINTS, Parsed
from ddl.syntax.upserts import ConflictClause
from emulator import errors
from emulator.sql.postgres.expression_trees import ExpressionTrees
from emulator.sql.postgres.nodes import Node
from emulator.sql.postgres.parser import find_hints, parse_expression, parse_statement
from emulator.values.postgres_tables import POSTGRES_VIEWS

INT64_MAX = 2**63 - 1
SIDES = {"JOIN_INNER": "", "JOIN_LEFT": "LEFT", "JOIN_RIGHT": "RIGHT", "JOIN_FULL": "FULL"}
NAME = rb'(?:[\w$]++|"(?:""|[^"])++")'
TABLE_BEFORE = re.compile(rb"\s*+" + NAME + rb"(?:\s*+\.\s*+" + NAME + rb")*+")
JOIN_BEFORE = re.compile(rb"\s*+nioj\b", re.IGNORECASE)
"""What stands before a hint, read from its place backwards."""
NAME_BYTES_MAX = 2_000
"""Bytes before a hint that are looked at: more than the names of a schema and its table."""
SET_FUNCTIONS = {
    "generate_series": "GENERATE_SERIES",
    "jsonb_array_elements": "JSONB_ARRAY_ELEMENTS",
}
"""Functions in FROM that give rows, and what gives an array of them."""
SYSTEM_SCHEMAS = {"information_schema", "pg_catalog", "spanner_sys"}
SETS = {"SETOP_UNION": exp.Union, "SETOP_INTERSECT": exp.Intersect, "SETOP_EXCEPT": exp.Except}


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
        self._schema = schema
        self._hints: dict[str, str] = {}
        self._keyword_hints: list[tuple[str, dict[str, str]]] = []
        self._table_hints: list[tuple[int, dict[str, str]]] = []
        self._sql = sql.encode()
        for place, hints in find_hints(sql):
            self._keep_hint(place, hints)
        self.expressions = ExpressionTrees(self.query)

    def statement(self, node: Node) -> Parsed:
        """A statement, with its hints."""
        if node.kind == "InsertStmt":
            parsed = self._insert(node)
        elif node.kind == "UpdateStmt":
            parsed = self._update(node)
        elif node.kind == "DeleteStmt":
            parsed = self._delete(node)
        elif node.kind == "SelectStmt":
            parsed = Parsed(self.query(node))
        else:
            kind = node.kind.removesuffix("Stmt")
            raise errors.invalid_argument(f"Statement not supported: {kind}")
        if self._table_hints:
            raise errors.invalid_argument(
                "A hint stands behind the name of a table, behind JOIN, or before the statement"
            )
        parsed.hints.update(self._hints)
        parsed.keyword_hints.extend(self._keyword_hints)
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

    def _keep_hint(self, place: int, hints: dict[str, str]) -> None:
        before = self._sql[max(place - NAME_BYTES_MAX, 0) : place][::-1]
        if not before.strip() and place <= NAME_BYTES_MAX:
            self._hints.update(hints)
        elif JOIN_BEFORE.match(before):
            self._keyword_hints.append(("JOIN", hints))
        else:
            table = TABLE_BEFORE.match(before)
            self._table_hints.append((place - table.end() if table else -1, hints))

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
            self._from(select, sources)
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

    def _from(self, select: exp.Expr, sources: list[Node]) -> None:
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
            join.set("on", self.expressions.expression(Node.of(condition)))
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
            query = self.query(node.node("subquery"))
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
        arguments = self.expressions.expressions(called.nodes("args"))
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
        table = self._table(node)
        if not names or alias is None:
            return table
        columns = self._all_columns(table, generated=True)
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

    def _table(self, node: Node) -> exp.Table:
        owner, name = node.text("schemaname"), node.text("relname")
        if node.get("catalogname"):
            raise errors.unimplemented("A name with a catalog")
        owner = "" if owner == "public" else owner
        if not owner and f"PG_CATALOG.{name}".upper() in POSTGRES_VIEWS:
            owner = "pg_catalog"
        if owner in SYSTEM_SCHEMAS and f"{owner}.{name}".upper() not in POSTGRES_VIEWS:
            raise errors.unimplemented(f"the table {owner}.{name}")
        table = exp.Table(this=exp.to_identifier(name, quoted=True))
        if owner:
            table.set("db", exp.to_identifier(owner, quoted=True))
        alias = self._alias(node)
        if alias is not None:
            table.set("alias", alias)
        for place, hints in list(self._table_hints):
            if place == node.location:
                table.meta[HINTS] = hints
                self._table_hints.remove((place, hints))
        node.ignore("inh", "relpersistence")
        node.finish()
        return table

    def _target_table(self, node: Node) -> exp.Table:
        relation = node.part("relation", "RangeVar")
        assert relation is not None
        return self._table(relation)

    def _insert(self, node: Node) -> Parsed:
        table = self._target_table(node)
        named = node.nodes("cols")
        columns = [each.text("name") for each in named]
        for each in named:
            each.finish()
        has_list = bool(columns)
        columns = columns or self._all_columns(table)
        if node.get("selectStmt") is None:
            raise errors.unimplemented("INSERT ... DEFAULT VALUES")
        source = node.node("selectStmt")
        if source.get("valuesLists"):
            rows = [
                exp.Tuple(expressions=self.expressions.expressions(row.nodes("items")))
                for row in source.nodes("valuesLists")
            ]
            values: exp.Expr = exp.Values(expressions=rows)
            source.finish()
        else:
            values = self.query(source)
        if not has_list:
            columns = columns[: count_values(values, len(columns))]
        self._expect_columns(table, columns)
        target = exp.Schema(
            this=table, expressions=[exp.to_identifier(name, quoted=True) for name in columns]
        )
        clause, update = self._on_conflict(node, table)
        returning = self._returning(node)
        node.finish()
        tree = exp.Insert(this=target, expression=values)
        return Parsed(tree, returning=returning, on_conflict=clause, on_conflict_update=update)

    def _all_columns(self, node: exp.Table, *, generated: bool = False) -> list[str]:
        """The columns of INSERT without a list; with those that are ``generated``, of ``*``."""
        table = self._schema.find_table(".".join(part.name for part in node.parts))
        if table is None:
            return []
        return [
            c.name for c in table.columns if (generated or c.generated is None) and not c.hidden
        ]

    def _expect_columns(self, node: exp.Table, names: list[str]) -> None:
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

    def _on_conflict(
        self, node: Node, table: exp.Table
    ) -> tuple[ConflictClause | None, exp.Expr | None]:
        clause = node.part("onConflictClause")
        if clause is None:
            return None, None
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
                update.set("where", exp.Where(this=self.expressions.expression(Node.of(where))))
        clause.finish()
        self._expect_columns(table, columns)
        return ConflictClause(tuple(columns), constraint), update

    def _assignments(self, node: Node, table: exp.Table) -> list[exp.Expr]:
        pairs: list[exp.Expr] = []
        self._expect_columns(table, [each.text("name") for each in node.nodes("targetList")])
        for each in node.nodes("targetList"):
            column = exp.Column(this=exp.to_identifier(each.text("name"), quoted=True))
            value = self.expressions.expression(each.node("val"))
            each.finish()
            pairs.append(exp.EQ(this=column, expression=value))
        return pairs

    def _where(self, node: Node) -> exp.Where:
        where = node.get("whereClause")
        if where is None:
            return exp.Where(this=exp.Boolean(this=True))
        return exp.Where(this=self.expressions.expression(Node.of(where)))

    def _update(self, node: Node) -> Parsed:
        table = self._target_table(node)
        tree = exp.Update(
            this=table,
            expressions=self._assignments(node, table),
            where=self._where(node),
        )
        returning = self._returning(node)
        node.finish()
        return Parsed(tree, returning=returning)

    def _delete(self, node: Node) -> Parsed:
        tree = exp.Delete(this=self._target_table(node), where=self._where(node))
        returning = self._returning(node)
        node.finish()
        return Parsed(tree, returning=returning)

    def _returning(self, node: Node) -> tuple[exp.Expr, ...] | None:
        items = node.nodes("returningList")
        return tuple(map(self.expressions.target, items)) if items else None


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

"""SELECT and WITH -> SQLite text whose columns are named as ``distinct_names`` says."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql import grouping, tails, windows
from emulator.sql.aggregates import UNGROUPABLE, has_aggregate
from emulator.sql.comparison import to_comparable
from emulator.sql.compiler import refuse_other_clauses
from emulator.sql.expressions import Expressions
from emulator.sql.ordering import order_terms
from emulator.sql.relations import From, columns_of, is_value_table
from emulator.sql.scope import CommonTable, Context, Scope
from emulator.sql.select_items import compile_items, write_items
from emulator.sql.set_operations import combine_queries, is_exact, operands_of
from emulator.sql.types import Columns, Output, Typed, distinct_names, name_of
from emulator.values.sqlite_text import quote_name
from emulator.values.types import INTERVAL, PG_NUMERIC
from spanner_schema.model.column_types import StructField, Type, TypeCode

SELECT_CLAUSES = (
    *("with_", "kind", "expressions", "distinct", "from_", "joins"),
    *("where", "group", "having", "order", "limit", "offset", "windows"),
    "qualify",
)

KEYED = {INTERVAL, PG_NUMERIC}
"""Types of which equal values may be written in several ways."""


class QueryCompiler:
    """Compiles queries; ``expressions`` compiles the expressions in them."""

    def __init__(self) -> None:
        self.expressions = Expressions(self.query)

    def query(self, node: exp.Expr, outer: Scope | None, context: Context) -> tuple[str, Columns]:
        """Any query: SQLite text and its columns."""
        outer_queries = dict(context.with_queries)
        try:
            prefix = self._compile_with(node, outer, context)
            if isinstance(node, exp.Subquery):
                sql, columns = self._compile_parenthesised(node, outer, context)
            elif isinstance(node, exp.Select):
                sql, columns = self._select(node, outer, context)
            elif isinstance(node, exp.SetOperation):
                sql, columns = self._set_operation(node, outer, context)
            else:
                raise errors.unimplemented(f"the query {node.sql('bigquery')[:60]}")
        finally:
            context.with_queries = outer_queries
        return prefix + sql, columns

    def _compile_parenthesised(
        self, node: exp.Subquery, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        refuse_other_clauses(node, "this", "with_", "order", "limit", "offset", "alias")
        sql, columns = self.query(node.this, outer, context)
        tail = tails.query_tail(self.expressions, node, columns, outer, context)
        # A query with its own WITH needs parentheses when text comes before it.
        return f"SELECT * FROM ({sql}){tail}", columns

    def _compile_with(self, node: exp.Expr, outer: Scope | None, context: Context) -> str:
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return ""
        if clause.args.get("recursive"):
            raise errors.unimplemented("WITH RECURSIVE")
        parts, names = [], set()
        for each in clause.expressions:
            folded = each.alias.casefold()
            if folded in names:
                raise errors.invalid_argument(f"Duplicate alias {each.alias} in WITH")
            names.add(folded)
            sql, columns = self.query(each.this, outer, context)
            listed = columns_of(columns)
            name = context.alias()
            context.with_queries[folded] = CommonTable(name, listed, is_value_table(each.this))
            written = ", ".join(map(quote_name, distinct_names([c.name for c in columns])))
            parts.append(f"{quote_name(name)}({written}) AS ({sql})")
        return f"WITH {', '.join(parts)} "

    def _set_operation(
        self, node: exp.SetOperation, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        operands = operands_of(node)
        if is_exact(node):
            operands = [node.this, node.expression]
        compiled = [self.query(each, outer, context) for each in operands]
        sql, columns = combine_queries(node, compiled, context)
        tail = tails.query_tail(self.expressions, node, columns, outer, context)
        return (f"SELECT * FROM ({sql}){tail}" if tail else sql), columns

    def _select(
        self, node: exp.Select, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        refuse_other_clauses(node, *SELECT_CLAUSES)
        if not node.expressions:
            raise errors.invalid_argument("Syntax error: SELECT needs at least one column")
        scope = Scope(parent=outer)
        source = From(self.expressions, node, scope, context).compile()
        if not source:
            refuse_without_from(node, in_postgres=context.conversions is not None)
        where = self._where(node, scope, context)
        groups = grouping.group_keys(self.expressions, node, scope, context)
        if grouping.is_aggregating(node):
            scope.grouped = frozenset(key.sql for key in groups)
        windows.add_named_windows(node, scope)
        scope.windows_allowed = True
        outputs = compile_items(self.expressions, node, scope, context)
        scope.windows_allowed = False
        rest = source + where + grouping.group_clause(groups)
        having = self._having(node, outputs, scope, context)
        rest += having
        scope.windows_allowed = True
        distinct = self._distinct(node, outputs)
        intervals = distinct and any(each.type in KEYED for each in outputs)
        if node.args.get("qualify") is not None:
            sql = self._compile_qualify(node, outputs, rest, distinct, scope, context)
        elif scope.aliases_inside:
            sql = self._filter_outside(node, outputs, rest.removesuffix(having), outer, context)
        elif intervals:
            sql = distinct_rows(outputs, f"SELECT {', '.join(write_items(outputs))}{rest}")
        else:
            sql = f"SELECT {distinct}{', '.join(write_items(outputs))}{rest}"
            if not distinct:
                sql += tails.select_tail(self.expressions, node, outputs, scope, context)
        if distinct:
            tail = tails.query_tail(self.expressions, node, outputs, outer, context)
            sql = f"SELECT * FROM ({sql}){tail}" if tail else sql
        return wrap_as_value(node, sql, outputs)

    def _compile_qualify(
        self,
        node: exp.Select,
        outputs: Columns,
        rest: str,
        distinct: str,
        scope: Scope,
        context: Context,
    ) -> str:
        """QUALIFY: its condition, and the keys of ORDER BY, become columns of an inner SELECT."""
        condition = node.args["qualify"].this
        if not any(each.find(exp.Window) for each in (condition, *node.expressions)):
            raise errors.invalid_argument(
                "The QUALIFY clause requires an analytic function to be present"
            )
        scope.aliases = {each.name.casefold(): each.typed for each in outputs if each.name}
        test = self.expressions.boolean(condition, scope, context, "The QUALIFY condition")
        scope.aliases = {}
        keys = [] if distinct else tails.order_keys(self.expressions, node, outputs, scope, context)
        hidden = [f'{test.sql} AS "$qualify"']
        hidden += [f'{key.sql} AS "$key{n}"' for n, key in enumerate(keys)]
        shown = ", ".join(map(quote_name, distinct_names([each.name for each in outputs])))
        inner = f"SELECT {', '.join(write_items(outputs) + hidden)}{rest}"
        sql = f'SELECT {distinct}{shown} FROM ({inner}) WHERE "$qualify"'
        if distinct:
            return sql
        terms = [
            order_terms(Typed(f'"$key{n}"', key.type), each)
            for n, (key, each) in enumerate(zip(keys, tails.order_items(node), strict=True))
        ]
        return sql + tails.order_clause(terms) + tails.limit_clause(self.expressions, node, context)

    def _distinct(self, node: exp.Select, outputs: Columns) -> str:
        """DISTINCT, where the query has it and its columns can be compared."""
        clause = node.args.get("distinct")
        if clause is None:
            return ""
        if clause.args.get("on"):
            raise errors.unimplemented("SELECT DISTINCT ON")
        for each in outputs:
            if each.type.code in UNGROUPABLE:
                raise errors.invalid_argument(
                    f"Column {each.name} of type {name_of(each.type)} cannot be used in"
                    " SELECT DISTINCT"
                )
        return "DISTINCT "

    def _where(self, node: exp.Select, scope: Scope, context: Context) -> str:
        where = node.args.get("where")
        if where is None:
            return ""
        if has_aggregate(where.this):
            raise errors.invalid_argument("Aggregate functions are not allowed in the WHERE clause")
        test = self.expressions.boolean(where.this, scope, context, "WHERE clause expression")
        return f" WHERE {test.sql}"

    def _having(self, node: exp.Select, outputs: Columns, scope: Scope, context: Context) -> str:
        """HAVING: a name that is both a column and an alias means the alias."""
        having = node.args.get("having")
        if having is None:
            return ""
        if not grouping.is_aggregating(node):
            raise errors.invalid_argument(
                "The HAVING clause requires GROUP BY or aggregation to be present"
            )
        over = {each.alias.casefold() for each in node.expressions if each.find(exp.Window)}
        scope.aliases = {
            each.name.casefold(): each.typed
            for each in outputs
            if each.name and each.name.casefold() not in over
        }
        test = self.expressions.boolean(having.this, scope, context, "The HAVING condition")
        scope.aliases = {}
        return f" HAVING {test.sql}"

    def _filter_outside(
        self,
        node: exp.Select,
        outputs: Columns,
        rest: str,
        outer: Scope | None,
        context: Context,
    ) -> str:
        """HAVING with a subquery over an alias: a condition on the rows of the query.

        SQLite computes no aggregate inside of the subquery.
        """
        names = list(map(quote_name, distinct_names([each.name for each in outputs])))
        scope = Scope(parent=outer)
        scope.aliases = {
            each.name.casefold(): replace(each.typed, sql=name)
            for each, name in zip(outputs, names, strict=True)
            if each.name
        }
        condition = node.args["having"].this
        test = self.expressions.boolean(condition, scope, context, "The HAVING condition")
        tail = tails.query_tail(self.expressions, node, outputs, outer, context)
        inner = f"SELECT {', '.join(write_items(outputs))}{rest}"
        return f"SELECT {', '.join(names)} FROM ({inner}) WHERE {test.sql}{tail}"


def refuse_without_from(node: exp.Select, in_postgres: bool) -> None:
    """INVALID_ARGUMENT for what a SELECT without FROM cannot have."""
    clauses = {"where": "a WHERE", "group": "a GROUP BY", "having": "a HAVING"}
    if not in_postgres:
        clauses["order"] = "an ORDER BY"
    for clause, name in clauses.items():
        if node.args.get(clause) is not None:
            raise errors.invalid_argument(f"Query without FROM clause cannot have {name} clause")
    if node.args.get("distinct") is not None:
        raise errors.invalid_argument("Query without FROM clause cannot use SELECT DISTINCT")
    for each in node.expressions:
        if has_aggregate(each):
            raise errors.invalid_argument(
                "Aggregate functions are not allowed in SELECT without FROM clause"
            )


def distinct_rows(outputs: Columns, sql: str) -> str:
    """DISTINCT where equal values (a month, 30 days) are one."""
    names = list(map(quote_name, distinct_names([each.name for each in outputs])))
    keys = [
        to_comparable(replace(each.typed, sql=name)).sql
        for each, name in zip(outputs, names, strict=True)
    ]
    return f"SELECT {', '.join(names)} FROM ({sql}) GROUP BY {', '.join(keys)}"


def wrap_as_value(node: exp.Select, sql: str, columns: Columns) -> tuple[str, Columns]:
    """SELECT AS STRUCT makes one column of all; AS VALUE has one column without a name."""
    kind = node.args.get("kind")
    if kind is None:
        return sql, columns
    names = distinct_names([each.name for each in columns])
    if kind == "VALUE":
        if len(columns) != 1:
            raise errors.invalid_argument("SELECT AS VALUE query must have exactly one column")
        text = f'SELECT {quote_name(names[0])} AS "$0" FROM ({sql})'
        return text, (Output("", replace(columns[0].typed, column="")),)
    if kind != "STRUCT":
        raise errors.unimplemented(f"SELECT AS {kind}")
    listed = ", ".join(map(quote_name, names))
    members = tuple(StructField(each.name, each.type) for each in columns)
    struct = Typed('"$0"', Type(TypeCode.STRUCT, fields=members))
    return f'SELECT fn_array({listed}) AS "$0" FROM ({sql})', (Output("", struct),)

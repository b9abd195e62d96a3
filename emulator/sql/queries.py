"""SELECT, set operations, WITH, FROM and joins -> SQLite text."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from ddl import views
from ddl.dialect import HINTS
from ddl.schema import Index, StructField, Table, Type, TypeCode, Verbatim
from emulator import errors
from emulator.sql.coerce import require
from emulator.sql.expressions import Expressions, elements, has_aggregate
from emulator.sql.proof import check_null_filtered
from emulator.sql.scope import Context, Relation, Scope
from emulator.sql.types import FLOATS, INT64, STRING, Typed, common, name_of, plain, quote_name
from emulator.sql.views import view_query

Columns = tuple[tuple[str, Type], ...]
TABLE_HINTS = {
    "FORCE_INDEX",
    "GROUPBY_SCAN_OPTIMIZATION",
    "SCAN_METHOD",
    "INDEX_STRATEGY",
    "SEEKABLE_KEY_SIZE",
}


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a SELECT list."""

    name: str
    typed: Typed


class Queries:
    """Compiles queries; ``expressions`` compiles what stands inside them."""

    def __init__(self) -> None:
        self.expressions = Expressions(self.query)

    def query(self, node: exp.Expr, outer: Scope | None, context: Context) -> tuple[str, Columns]:
        """Any query: SQLite text and its columns."""
        if isinstance(node, exp.Subquery):
            return self._parenthesised(node, outer, context)
        if isinstance(node, exp.Select | exp.SetOperation):
            known = dict(context.with_queries)
            try:
                prefix = self._with(node, outer, context)
                if isinstance(node, exp.Select):
                    sql, columns = self._select(node, outer, context)
                else:
                    sql, columns = self._set_operation(node, outer, context)
            finally:
                context.with_queries = known
            return prefix + sql, columns
        raise errors.unimplemented(f"the query {node.sql('bigquery')[:60]}")

    def _parenthesised(
        self, node: exp.Subquery, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        sql, columns = self.query(node.this, outer, context)
        tail = self._tail(node, Scope(parent=outer), columns, context)
        return (f"SELECT * FROM ({sql}){tail}" if tail else sql), columns

    def _with(self, node: exp.Query, outer: Scope | None, context: Context) -> str:
        clause = node.args.get("with_") or node.args.get("with")
        if clause is None:
            return ""
        if clause.args.get("recursive"):
            raise errors.unimplemented("WITH RECURSIVE")
        parts = []
        for each in clause.expressions:
            sql, columns = self.query(each.this, outer, context)
            name = context.alias()
            context.with_queries[each.alias.casefold()] = Relation(name, columns)
            listed = ", ".join(quote_name(column) for column, _ in unique(columns))
            parts.append(f"{quote_name(name)}({listed}) AS ({sql})")
        return f"WITH {', '.join(parts)} "

    def _set_operation(
        self, node: exp.SetOperation, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        left, left_columns = self.query(node.this, outer, context)
        right, right_columns = self.query(node.expression, outer, context)
        if len(left_columns) != len(right_columns):
            raise errors.invalid_argument(
                "Queries in a set operation have mismatched column counts"
            )
        columns = []
        for (name, mine), (_, theirs) in zip(left_columns, right_columns, strict=True):
            type_ = common([mine, theirs])
            if type_ is None or type_ != mine or type_ != theirs:
                raise errors.invalid_argument(
                    f"Column {name} of a set operation has types"
                    f" {name_of(mine)} and {name_of(theirs)}; cast one of them"
                )
            columns.append((name, type_))
        distinct = node.args.get("distinct")
        word = type(node).__name__.upper()
        if not distinct and word != "UNION":
            raise errors.unimplemented(f"{word} ALL")
        operator = word if distinct else "UNION ALL"
        found = tuple(columns)
        sql = f"SELECT * FROM ({left}) {operator} SELECT * FROM ({right})"
        return sql + self._tail(node, Scope(parent=outer), found, context), found

    def _select(
        self, node: exp.Select, outer: Scope | None, context: Context
    ) -> tuple[str, Columns]:
        scope = Scope(parent=outer)
        source = self._from(node, scope, context)
        where = self._where(node, scope, context)
        groups = self._group_keys(node, scope, context)
        grouped = groups is not None or any(map(has_aggregate, node.expressions))
        having = node.args.get("having")
        if grouped or having is not None:
            scope.grouped = frozenset(groups or ())
        items = self._items(node, scope, context)
        sql = "SELECT "
        distinct = node.args.get("distinct")
        sql += "DISTINCT " if distinct else ""
        sql += ", ".join(f"{i.typed.sql} AS {quote_name(n)}" for i, n in named(items))
        sql += source + where
        if groups:
            sql += " GROUP BY " + ", ".join(groups)
        scope.aliases = {i.name.casefold(): i.typed for i in items if i.name}
        if having is not None:
            test = self.expressions.boolean(having.this, scope, context, "The HAVING condition")
            sql += f" HAVING {test.sql}"
        columns = tuple((i.name, result_type(i.typed)) for i in items)
        sql += self._tail(node, scope, columns, context, items, bool(distinct))
        if node.args.get("kind") == "STRUCT":
            return as_struct(sql, columns)
        return sql, columns

    def _where(self, node: exp.Expr, scope: Scope, context: Context) -> str:
        where = node.args.get("where")
        if where is None:
            return ""
        if has_aggregate(where.this):
            raise errors.invalid_argument("Aggregate functions are not allowed in WHERE")
        test = self.expressions.boolean(where.this, scope, context, "WHERE clause expression")
        return f" WHERE {test.sql}"

    def _items(self, node: exp.Select, scope: Scope, context: Context) -> list[Item]:
        items: list[Item] = []
        for each in node.expressions:
            if isinstance(each, exp.Star):
                items += star(scope.relations, each, scope)
            elif isinstance(each, exp.Column) and isinstance(each.this, exp.Star):
                relation = scope.relation(each.table)
                if relation is None:
                    raise errors.invalid_argument(f"Unrecognized name: {each.table}")
                items += star([relation], each.this, scope)
            else:
                typed = self.expressions.compile(each, scope, context)
                items.append(
                    Item(each.alias if isinstance(each, exp.Alias) else typed.column, typed)
                )
        return items

    def _group_keys(self, node: exp.Select, scope: Scope, context: Context) -> list[str] | None:
        clause = node.args.get("group")
        if clause is None:
            return None
        if any(clause.args.get(k) for k in ("rollup", "cube", "grouping_sets", "all")):
            raise errors.unimplemented("GROUP BY ROLLUP, CUBE, GROUPING SETS or ALL")
        keys = []
        for each in clause.expressions:
            target = each
            if isinstance(each, exp.Literal) and not each.is_string:
                target = ordinal(each, node.expressions, "GROUP BY")
            elif isinstance(each, exp.Column) and not each.table:
                alias = [e for e in node.expressions if isinstance(e, exp.Alias)]
                match = [e for e in alias if e.alias.casefold() == each.name.casefold()]
                if match and scope.find(each.name, None) is None:
                    target = match[0]
            inner = target.this if isinstance(target, exp.Alias) else target
            key = self.expressions.compile(inner, scope, context)
            if key.type is not None and key.type.code in {TypeCode.JSON, TypeCode.STRUCT}:
                raise errors.invalid_argument(f"Grouping by {name_of(key.type)} is not allowed")
            keys.append(key.sql)
        return keys

    def _tail(
        self,
        node: exp.Expr,
        scope: Scope,
        columns: Columns,
        context: Context,
        items: list[Item] | None = None,
        by_position: bool = False,
    ) -> str:
        """ORDER BY, LIMIT, OFFSET."""
        sql = ""
        order = node.args.get("order")
        if order is not None:
            keys = [
                self._order_key(each, scope, columns, context, items, by_position)
                for each in order.expressions
            ]
            sql += " ORDER BY " + ", ".join(keys)
        limit, offset = node.args.get("limit"), node.args.get("offset")
        if limit is not None:
            sql += f" LIMIT {self._count(limit.expression, scope, context, 'LIMIT')}"
        if offset is not None:
            sql += " LIMIT -1" if limit is None else ""
            sql += f" OFFSET {self._count(offset.expression, scope, context, 'OFFSET')}"
        return sql

    def _order_key(
        self,
        each: exp.Ordered,
        scope: Scope,
        columns: Columns,
        context: Context,
        items: list[Item] | None,
        by_position: bool,
    ) -> str:
        descending = " DESC" if each.args.get("desc") else ""
        position = self._position(each.this, columns)
        if position is not None and (items is None or by_position):
            return f"{position}{descending}"
        if items is None:
            raise errors.invalid_argument("ORDER BY of a set operation names its columns only")
        if position is not None:
            typed = items[position - 1].typed
        else:
            typed = self.expressions.compile(each.this, scope, context)
        if by_position:
            same = [n for n, i in enumerate(items, 1) if i.typed.sql == typed.sql]
            if not same:
                raise errors.invalid_argument("ORDER BY must name a column of SELECT DISTINCT")
            return f"{same[0]}{descending}"
        if typed.type is not None and typed.type.code in FLOATS:
            nan = f"({typed.sql} IS NOT NULL AND {typed.sql} <> 'NaN')"
            return (
                f"({typed.sql} IS NOT NULL){descending}, {nan}{descending}, {typed.sql}{descending}"
            )
        return f"{typed.sql}{descending}"

    def _position(self, node: exp.Expr, columns: Columns) -> int | None:
        """The place of an ORDER BY key in the SELECT list: an ordinal or a name of it."""
        if isinstance(node, exp.Literal) and not node.is_string:
            number = int(node.this)
            if not 1 <= number <= len(columns):
                raise errors.invalid_argument(f"ORDER BY column number {number} is out of range")
            return number
        if isinstance(node, exp.Column) and not node.table:
            names = [name.casefold() for name, _ in columns]
            if names.count(node.name.casefold()) == 1:
                return names.index(node.name.casefold()) + 1
        return None

    def _count(self, node: exp.Expr, scope: Scope, context: Context, where: str) -> str:
        if not isinstance(node, exp.Literal | exp.Parameter | exp.Cast):
            raise errors.invalid_argument(f"{where} expects an integer literal or parameter")
        item = require(self.expressions.compile(node, scope, context), INT64, context, where)
        return f"fn_not_negative({item.sql}, '{where}')" if item.literal is None else item.sql

    def _from(self, node: exp.Select, scope: Scope, context: Context) -> str:
        clause = node.args.get("from_") or node.args.get("from")
        if clause is None:
            if any(isinstance(each, exp.Star) for each in node.expressions):
                raise errors.invalid_argument("SELECT * must have a FROM clause")
            return ""
        sql = " FROM " + self._relation(clause.this, scope, context, node)
        for join in node.args.get("joins") or ():
            sql += self._join(join, scope, context, node)
        for lateral in node.args.get("laterals") or ():
            raise errors.unimplemented(f"{lateral.sql('bigquery')[:40]}")
        return sql

    def _join(self, join: exp.Join, scope: Scope, context: Context, query: exp.Select) -> str:
        before = list(scope.relations)
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        right = self._relation(join.this, scope, context, query)
        added = scope.relations[len(before) :]
        condition = join.args.get("on")
        word = f"{side} JOIN" if side else "CROSS JOIN" if kind == "CROSS" else "JOIN"
        if condition is not None:
            test = self.expressions.boolean(condition, scope, context, "JOIN ON clause")
            return f" {word} {right} ON {test.sql}"
        using = join.args.get("using")
        if using:
            tests = [merge(scope, before, added, each.name, side) for each in using]
            return f" {word} {right} ON {' AND '.join(tests)}"
        if side:
            raise errors.invalid_argument(f"{side} JOIN must have an ON or USING clause")
        return f" {'CROSS JOIN' if kind == 'CROSS' else ','} {right}"

    def _relation(self, node: exp.Expr, scope: Scope, context: Context, query: exp.Select) -> str:
        if isinstance(node, exp.Table):
            return self._table(node, scope, context, query)
        if isinstance(node, exp.Unnest):
            return self._unnest(node, scope, context)
        if isinstance(node, exp.Subquery):
            if isinstance(node.this, exp.Table):
                raise errors.unimplemented("a join in parentheses")
            sql, columns = self.query(node.this, scope.parent, context)
            alias = node.alias or context.alias()
            scope.add(Relation(alias, unique(columns)))
            return f"({sql}) AS {quote_name(alias)}"
        raise errors.unimplemented(f"{node.sql('bigquery')[:60]} in FROM")

    def _unnest(self, node: exp.Unnest, scope: Scope, context: Context) -> str:
        values = self.expressions.compile(node.expressions[0], scope, context)
        if values.type is None or values.type.element is None:
            raise errors.invalid_argument("The argument of UNNEST must be an array")
        name = node.alias or (
            node.args["alias"].columns[0].name
            if node.args.get("alias") and node.args["alias"].columns
            else ""
        )
        alias = name or context.alias()
        offset = node.args.get("offset")
        columns: Columns = ()
        if values.type.element.code is TypeCode.STRUCT:
            raise errors.unimplemented("UNNEST of an array of STRUCT")
        source = elements(values)
        scope.add(Relation(alias, columns, value=values.type.element))
        if offset:
            shown = offset.name if isinstance(offset, exp.Expr) else "offset"
            relation = Relation(alias, ((shown, INT64),), value=values.type.element)
            scope.relations[-1] = relation
            inner = f'SELECT "value", "offset" AS {quote_name(shown)} FROM {source}'
            source = f"({inner})"
        return f"{source} AS {quote_name(alias)}"

    def _table(self, node: exp.Table, scope: Scope, context: Context, query: exp.Select) -> str:
        if isinstance(node.this, exp.Anonymous):
            raise errors.unimplemented(f"the table function {node.this.name}")
        if node.args.get("sample"):
            raise errors.unimplemented("TABLESAMPLE")
        name = ".".join(part.name for part in node.parts)
        alias = node.alias or name.rsplit(".", 1)[-1]
        common_table = context.with_queries.get(name.casefold())
        if common_table is not None:
            scope.add(Relation(alias, unique(common_table.columns)))
            return f"{quote_name(common_table.alias)} AS {quote_name(alias)}"
        if scope.relation(name.split(".", maxsplit=1)[0]) is not None and "." in name:
            raise errors.unimplemented("a FROM clause over an array column; write UNNEST(column)")
        if name.upper() in context.catalog_types:
            return self._catalog(name.upper(), alias, scope, context)
        view = views.view(context.schema, name)
        if view is not None:
            return self._view(view, alias, scope, context)
        table = context.schema.table(name)
        if table is None:
            raise errors.invalid_argument(f"Table not found: {name}")
        context.tables[table.name] = None
        hidden = frozenset(c.name.casefold() for c in table.columns if c.hidden)
        columns = tuple((c.name, c.type) for c in table.columns)
        scope.add(Relation(alias, columns, hidden=hidden))
        index = forced_index(node, table, context)
        if index is not None:
            check_null_filtered(index, table, alias, query)
        return context.source(table, index, alias)

    def _view(self, view: Verbatim, alias: str, scope: Scope, context: Context) -> str:
        """A view stands for its query, in which nothing of the query around it is known."""
        name = view.name.casefold()
        if name in context.open_views:
            raise errors.failed_precondition(f"The definition of VIEW `{view.name}` is recursive.")
        outside, context.with_queries = context.with_queries, {}
        context.open_views.append(name)
        context.views[name] = None
        try:
            sql, columns = self.query(view_query(view.text), None, context)
        finally:
            context.with_queries = outside
            context.open_views.pop()
        scope.add(Relation(alias, unique(columns)))
        return f"({sql}) AS {quote_name(alias)}"

    def _catalog(self, name: str, alias: str, scope: Scope, context: Context) -> str:
        if context.open_views:
            raise errors.invalid_argument(f"A view may not read {name}")
        context.catalog[name] = None
        scope.add(Relation(alias, context.catalog_types[name]))
        return f"{quote_name(name)} AS {quote_name(alias)}"


def result_type(typed: Typed) -> Type:
    """The type of a result column: NULL counts as INT64, an untyped parameter as STRING."""
    return plain(typed.type or (STRING if typed.parameter else INT64))


def forced_index(node: exp.Table, table: Table, context: Context) -> Index | None:
    """The index that @{FORCE_INDEX=i} names; None for the base table or without a hint."""
    hints = node.meta.get(HINTS, {})
    for name in hints:
        if name not in TABLE_HINTS:
            raise errors.invalid_argument(f"Unsupported hint: {name}.")
    wanted = hints.get("FORCE_INDEX")
    if wanted is None or wanted.upper() == "_BASE_TABLE":
        return None
    index = context.schema.index(wanted)
    if index is None or index.table.casefold() != table.name.casefold():
        raise errors.invalid_argument(
            f"The table {table.name} does not have a secondary index called {wanted}"
        )
    return index


def star(relations: list[Relation], node: exp.Star, scope: Scope) -> list[Item]:
    """* and alias.*, with EXCEPT; columns of USING come once, hidden ones not at all."""
    excluded = {
        e.name.casefold() for e in node.args.get("except_") or node.args.get("except") or ()
    }
    if node.args.get("replace"):
        raise errors.unimplemented("* REPLACE")
    items, merged = [], set()
    for relation in relations:
        if relation.value is not None:
            items.append(Item(relation.alias, relation.element()))
        for name, _ in relation.columns:
            folded = name.casefold()
            typed = relation.column(name)
            if folded in relation.hidden or folded in excluded or typed is None:
                continue
            if folded in scope.merged:
                if folded in merged:
                    continue
                merged.add(folded)
                typed = scope.merged[folded]
            items.append(Item(name, typed))
    return items


def merge(scope: Scope, left: list[Relation], right: list[Relation], name: str, side: str) -> str:
    """A column of USING: the join's condition, and the one column that it leaves."""
    first = next((c for r in left if (c := r.column(name)) is not None), None)
    second = next((c for r in right if (c := r.column(name)) is not None), None)
    if first is None or second is None:
        raise errors.invalid_argument(f"Column {name} in USING clause not found")
    known = scope.merged.get(name.casefold(), first)
    sql = {"RIGHT": second.sql, "FULL": f"COALESCE({known.sql}, {second.sql})"}.get(side, known.sql)
    scope.merged[name.casefold()] = Typed(sql, first.type, column=first.column)
    return f"{known.sql} = {second.sql}"


def ordinal(node: exp.Literal, items: list[exp.Expr], where: str) -> exp.Expr:
    """The item of the SELECT list with this number."""
    number = int(node.this)
    if not 1 <= number <= len(items):
        raise errors.invalid_argument(f"{where} column number {number} is out of range")
    return items[number - 1]


def named(items: list[Item]) -> list[tuple[Item, str]]:
    """SQLite names of a SELECT list: as in ``unique``."""
    columns = tuple((item.name, item.typed.type or INT64) for item in items)
    return list(zip(items, (name for name, _ in unique(columns)), strict=True))


def unique(columns: Columns) -> Columns:
    """Columns with names that SQLite can tell apart: unnamed and repeated ones are renamed."""
    seen: set[str] = set()
    result = []
    for number, (name, type_) in enumerate(columns):
        shown = name if name and name.casefold() not in seen else f"${number}"
        seen.add(shown.casefold())
        result.append((shown, type_))
    return tuple(result)


def as_struct(sql: str, columns: Columns) -> tuple[str, Columns]:
    """SELECT AS STRUCT: one column."""
    from_names = ", ".join(quote_name(name) for name, _ in unique(columns))
    fields = tuple(StructField(name, type_) for name, type_ in columns)
    struct = Type(TypeCode.STRUCT, fields=fields)
    return f"SELECT fn_array({from_names}) FROM ({sql})", (("", struct),)

"""The FROM clause: tables, subqueries, UNNEST and joins -> SQLite text and names in scope."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from emulator import errors
from emulator.limits import JOINS_MAX
from emulator.sql.coerce import unify
from emulator.sql.comparison import compare
from emulator.sql.compiler import Compiler, refuse_other_clauses
from emulator.sql.composites import element_value, field_of
from emulator.sql.hints import BASE_TABLE, FORCE_INDEX, check_hints, read_value
from emulator.sql.parsed import HINTS
from emulator.sql.proof import check_null_filtered
from emulator.sql.protos import readable_fields
from emulator.sql.sampling import add_sample
from emulator.sql.scope import CommonTable, Context, Relation, Scope
from emulator.sql.types import Columns, Typed
from emulator.sql.views import view_query
from emulator.values.sqlite_text import quote_name
from emulator.values.types import FLOATS, INT64
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import join_name, same_name, split_name
from spanner_schema.model.schema import Index, Schema, Table, Verbatim
from spanner_schema.syntax import views
from spanner_schema.syntax.protos import list_bundle_types
from spanner_schema.syntax.search_indexes import list_search_indexes
from spanner_schema.syntax.vector_indexes import list_vector_indexes

WITH_FIELDS = {TypeCode.STRUCT, TypeCode.PROTO}
TABLE_HINTS = {
    FORCE_INDEX,
    "GROUPBY_SCAN_OPTIMIZATION",
    "SCAN_METHOD",
    "INDEX_STRATEGY",
    "SEEKABLE_KEY_SIZE",
}
READ_FUNCTIONS = "READ_"
"""How the functions that read change streams begin; those that exist are no tables."""

IMPLIED_SCHEMA = "PG_CATALOG"
"""Where PostgreSQL looks for a table that no WITH names, before it looks into the schemas."""


@dataclass(frozen=True, slots=True)
class Source:
    """A part of a FROM clause: SQLite text, and the columns that * stands for."""

    sql: str
    columns: list[Typed]


@dataclass(frozen=True, slots=True)
class Merge:
    """A column of USING: the one that is left, the two that it is made of, and their equality."""

    column: Typed
    parts: tuple[Typed, Typed]
    test: str


class From:
    """Compiles the FROM clause of one SELECT into its scope."""

    def __init__(
        self, compiler: Compiler, query: exp.Select, scope: Scope, context: Context
    ) -> None:
        self._compiler = compiler
        self._query = query
        self._scope = scope
        self._context = context

    def compile(self) -> str:
        """The clause with a leading blank; an empty text if the query has no FROM."""
        clause = self._query.args.get("from_")
        if clause is None:
            if any(isinstance(each, exp.Star) for each in self._query.expressions):
                raise errors.invalid_argument("SELECT * must have a FROM clause")
            return ""
        joins = self._query.args.get("joins") or []
        if len(joins) > JOINS_MAX:
            raise errors.invalid_argument(
                f"Number of joins exceeds the maximum allowed limit of {JOINS_MAX}."
            )
        source = self._relation(clause.this)
        for join in joins:
            source = self._join(source, join)
        self._scope.star = source.columns
        return " FROM " + source.sql

    def _join(self, left: Source, join: exp.Join) -> Source:
        refuse_other_clauses(join, "this", "side", "kind", "on", "using")
        before = list(self._scope.relations)
        side, kind = (join.side or "").upper(), (join.kind or "").upper()
        right = self._relation(join.this)
        added = self._scope.relations[len(before) :]
        word = f"{side} JOIN" if side else "CROSS JOIN" if kind == "CROSS" else "JOIN"
        joined = f"{left.sql} {word} {right.sql}"
        on, using = join.args.get("on"), join.args.get("using")
        if kind == "CROSS" and (on is not None or using):
            raise errors.invalid_argument("CROSS JOIN does not take an ON or USING clause")
        if on is not None:
            test = self._compiler.boolean(on, self._scope, self._context, "JOIN ON clause")
            return Source(f"{joined} ON {test.sql}", left.columns + right.columns)
        if using:
            merges = [self._merge(before, added, each.name, side) for each in using]
            gone = [part for merge in merges for part in merge.parts]
            rest = [each for each in left.columns + right.columns if each not in gone]
            tests = " AND ".join(merge.test for merge in merges)
            return Source(f"{joined} ON {tests}", [merge.column for merge in merges] + rest)
        columns = left.columns + right.columns
        # An array needs no condition.
        if side == "LEFT" and is_array(join.this, self._scope):
            return Source(f"{joined} ON TRUE", columns)
        if side or (kind != "CROSS" and not is_array(join.this, self._scope)):
            raise errors.invalid_argument(f"{side or 'INNER'} JOIN must have an ON or USING clause")
        return Source(f"{left.sql} CROSS JOIN {right.sql}", columns)

    def _merge(self, left: list[Relation], right: list[Relation], name: str, side: str) -> Merge:
        """A column of USING: the join's condition, and the one column that it leaves."""
        folded = name.casefold()
        first = self._scope.merged.get(folded) or merge_column(left, name)
        second = merge_column(right, name)
        (left_column, other), type_ = unify([first, second], self._context, f"USING ({name})")
        if self._context.conversions is not None and type_.code in FLOATS:
            raise errors.unimplemented("USING of a floating-point column")
        sql = {"RIGHT": other.sql, "FULL": f"COALESCE({left_column.sql}, {other.sql})"}.get(
            side, left_column.sql
        )
        column = Typed(sql, type_, column=name)
        self._scope.merged[folded] = column
        return Merge(column, (first, second), compare(left_column, "=", other, type_))

    def _relation(self, node: exp.Expr) -> Source:
        """A relation, and what is joined to it before the rest: (a JOIN b ON ...)."""
        before = len(self._scope.relations)
        inner = node.this if isinstance(node, exp.Subquery) else None
        nested = isinstance(inner, exp.Table | exp.Unnest) or (
            (isinstance(inner, exp.Subquery) and not inner.args.get("with_"))
            and bool(inner.args.get("joins"))
        )
        source = self._relation(inner) if nested and inner else self._single_relation(node, before)
        joins = node.args.get("joins") or []
        for join in joins:
            source = self._join(source, join)
        return Source(f"({source.sql})", source.columns) if joins or nested else source

    def _single_relation(self, node: exp.Expr, before: int) -> Source:
        if isinstance(node, exp.Table):
            sql = self._table(node)
        elif isinstance(node, exp.Unnest):
            sql = self._unnest(node)
        elif isinstance(node, exp.Subquery):
            sql = self._subquery(node)
        else:
            raise errors.unimplemented(f"{node.sql('bigquery')[:60]} in FROM")
        added = self._scope.relations[before:]
        return Source(sql, [column for each in added for column in relation_columns(each)])

    def _subquery(self, node: exp.Subquery) -> str:
        sql, columns = self._compiler.subquery(node.this, self._scope.parent, self._context)
        alias = node.alias or self._context.alias()
        listed = tuple((each.name, each.type) for each in columns)
        self._scope.add(rows_of(alias, listed, is_value_table(node.this), self._context))
        source = f"({sql}) AS {quote_name(alias)}"
        return add_sample(self._compiler, source, alias, node, self._context)

    def _unnest(self, node: exp.Unnest) -> str:
        """UNNEST(array) [AS alias] [WITH OFFSET [AS name]]."""
        if len(node.expressions) != 1:
            raise errors.unimplemented("UNNEST of several arrays")
        values = self._compiler.compile(node.expressions[0], self._scope, self._context)
        if values.type is None or values.type.element is None:
            raise errors.invalid_argument(
                "Values referenced in UNNEST must be arrays; UNNEST contains an expression of"
                f" another type: {node.expressions[0].sql('bigquery')[:40]}"
            )
        named = node.args.get("alias")
        columns = named.columns if named is not None else []
        name = node.alias or (columns[0].name if columns else "")
        alias = name or self._context.alias()
        taken = any(r.alias.casefold() == alias.casefold() for r in self._scope.relations)
        qualifier = quote_name(self._context.alias() if taken else alias)
        element = element_value(f'{qualifier}."value"', values.type.element)
        column = columns[0].name if columns else name
        value = Typed(element.sql, element.type, column=column)
        fields = fields_of(value, self._context)
        offset = node.args.get("offset")
        if offset:
            shown = offset.name if isinstance(offset, exp.Expr) else "offset"
            fields += (Typed(f'{qualifier}."key"', INT64, column=shown),)
        if node.alias and columns:
            # AS t(c): rows of a table with one column, which are no values by themselves.
            self._scope.relations.append(Relation(alias, (value,), None))
            return f"json_each({values.sql}) AS {qualifier}"
        # Two arrays may have one name; then it is ambiguous.
        self._scope.relations.append(Relation(alias, fields, value))
        return f"json_each({values.sql}) AS {qualifier}"

    def _table(self, node: exp.Table) -> str:
        if isinstance(node.this, exp.Anonymous):
            if node.this.name.upper().startswith(READ_FUNCTIONS):
                raise errors.invalid_argument(f"Table-valued function not found: {node.this.name}")
            raise errors.unimplemented(f"the table function {node.this.name}")
        refuse_other_clauses(node, "this", "db", "catalog", "alias", "sample", "joins", "hints")
        name = ".".join(part.name for part in node.parts)
        alias = node.alias or split_name(name)[1]
        common_table = self._context.with_queries.get(name.casefold())
        if common_table is not None:
            return self._common_table(node, common_table, alias)
        path = self._path(node, name)
        if path is not None:
            return self._unnest(path)
        for system in (name.upper(), f"{IMPLIED_SCHEMA}.{name.upper()}"):
            if system in self._context.catalog_types:
                return self._catalog(node, system, alias)
        view = views.find_view(self._context.schema, name)
        if view is not None and self._context.means(view.name, name):
            return self._view(node, view, alias)
        table = self._context.find_table(name)
        if table is None:
            raise self._context.table_not_found(name)
        self._context.tables[table.name] = None
        self._scope.add(table_relation(table, alias))
        index = find_forced_index(node, table, self._context)
        if index is not None:
            check_null_filtered(index, table, alias, self._query)
        source = self._context.source(table, index, alias)
        return add_sample(self._compiler, source, alias, node, self._context)

    def _path(self, node: exp.Table, name: str) -> exp.Unnest | None:
        """``t.array AS x`` where t is an alias: UNNEST(t.array) AS x."""
        first, *rest = [part.name for part in node.parts]
        if not rest or self._scope.relation(first) is None:
            return None
        column: exp.Expr = exp.column(exp.to_identifier(rest[0]), table=exp.to_identifier(first))
        for field in rest[1:]:
            column = exp.Dot(this=column, expression=exp.to_identifier(field))
        alias = exp.TableAlias(columns=[exp.to_identifier(node.alias or rest[-1])])
        return exp.Unnest(expressions=[column], alias=alias)

    def _common_table(self, node: exp.Table, common_table: CommonTable, alias: str) -> str:
        self._scope.add(rows_of(alias, common_table.columns, common_table.value, self._context))
        source = f"{quote_name(common_table.name)} AS {quote_name(alias)}"
        return add_sample(self._compiler, source, alias, node, self._context)

    def _view(self, node: exp.Table, view: Verbatim, alias: str) -> str:
        """Expands a view to its query, which sees nothing of the query around it."""
        context, name = self._context, view.name.casefold()
        if name in context.open_views:
            raise errors.failed_precondition(f"The definition of VIEW `{view.name}` is recursive.")
        outside, context.with_queries = context.with_queries, {}
        context.open_views.append(name)
        context.views[name] = None
        try:
            sql, columns = self._compiler.subquery(
                view_query(view.text, list_bundle_types(context.schema), context.schema.dialect),
                None,
                context,
            )
        finally:
            context.with_queries = outside
            context.open_views.pop()
        self._scope.add(Relation.of(alias, columns_of(columns)))
        source = f"({sql}) AS {quote_name(alias)}"
        return add_sample(self._compiler, source, alias, node, context)

    def _catalog(self, node: exp.Table, name: str, alias: str) -> str:
        if self._context.open_views:
            raise errors.invalid_argument(f"A view may not read {name}")
        self._context.catalog[name] = None
        self._scope.add(Relation.of(alias, self._context.catalog_types[name]))
        source = f"{quote_name(name)} AS {quote_name(alias)}"
        return add_sample(self._compiler, source, alias, node, self._context)


def table_relation(table: Table, alias: str) -> Relation:
    """A table of the schema."""
    hidden = frozenset(c.name.casefold() for c in table.columns if c.hidden)
    return Relation.of(alias, tuple((c.name, c.type) for c in table.columns), hidden)


def rows_of(
    alias: str, columns: tuple[tuple[str, Type], ...], value: bool, context: Context
) -> Relation:
    """The rows of a query; those of a value table are known by the alias too."""
    relation = Relation.of(alias, columns)
    if not value:
        return relation
    (only_column,) = relation.columns
    value_column = Typed(only_column.sql, only_column.type, column=alias)
    return Relation(alias, fields_of(value_column, context), value_column)


def fields_of(value: Typed, context: Context) -> tuple[Typed, ...]:
    """The fields of a value by their names; none unless it is a STRUCT or a message."""
    if value.type is not None and value.type.code is TypeCode.PROTO:
        return readable_fields(value, context.protos)
    if value.type is None or value.type.code is not TypeCode.STRUCT:
        return ()
    fields = [
        Typed(field_of(value, number).sql, field.type, column=field.name)
        for number, field in enumerate(value.type.fields)
    ]
    return tuple(fields)


def is_value_table(node: exp.Expr) -> bool:
    """Whether a query is SELECT AS STRUCT or AS VALUE: its rows are values."""
    while isinstance(node, exp.Subquery | exp.SetOperation):
        node = node.this
    return node.args.get("kind") is not None


def merge_column(relations: list[Relation], name: str) -> Typed:
    """A column that USING names."""
    columns = [column for relation in relations for column in relation.columns_named(name)]
    values = [relation.value for relation in relations if relation.value is not None]
    columns += [value for value in values if value.column.casefold() == name.casefold()]
    if not columns:
        raise errors.invalid_argument(f"Column {name} in USING clause not found")
    if len(columns) > 1:
        raise errors.invalid_argument(f"Column {name} in USING clause is ambiguous")
    return columns[0]


def find_forced_index(node: exp.Table, table: Table, context: Context) -> Index | None:
    """The index that @{FORCE_INDEX=i} names; None for the base table or without a hint.

    Spanner: a name without a schema is in that of the table.
    """
    written = check_hints(node.meta.get(HINTS, {}), TABLE_HINTS).get(FORCE_INDEX)
    name = BASE_TABLE if written is None else read_value(written, context.schema.dialect)
    if name.upper() == BASE_TABLE:
        return None
    qualified = name if "." in name else join_name(split_name(table.name)[0], name)
    index = context.schema.index(qualified)
    if index is None and is_kept_index(context.schema, table, qualified):
        refuse_disabled_index(context.schema, qualified)
        return None
    if index is None or index.table.casefold() != table.name.casefold():
        raise errors.invalid_argument(
            f"The table {table.name} does not have a secondary index called {name}"
        )
    return index


def is_kept_index(schema: Schema, table: Table, name: str) -> bool:
    """Whether a hint names a vector index or a search index. Distances are exact here, from the
    table itself, and functions that search are refused."""
    kept = [(index.name, index.table) for index in list_vector_indexes(schema)]
    kept += [(index.name, index.table) for index in list_search_indexes(schema)]
    return any(same_name(i, name) and same_name(t, table.name) for i, t in kept)


def refuse_disabled_index(schema: Schema, name: str) -> None:
    """Spanner: a query fails that forces a vector index with the option ``disable_search``."""
    for index in list_vector_indexes(schema):
        disabled = dict(index.options).get("disable_search", "").upper() == "TRUE"
        if same_name(index.name, name) and disabled:
            raise errors.invalid_argument(
                f"The index {name} cannot be used: its option disable_search is true"
            )


def relation_columns(relation: Relation) -> list[Typed]:
    """What alias.* stands for: the columns that are not hidden."""
    value = relation.value
    plain = value is not None and (value.type is None or value.type.code not in WITH_FIELDS)
    items = [value] if plain and value is not None else []
    return items + [c for c in relation.columns if c.column.casefold() not in relation.hidden]


def is_array(node: exp.Expr, scope: Scope) -> bool:
    """Whether an item of FROM is UNNEST(...) or a path to an array."""
    if isinstance(node, exp.Table) and len(node.parts) > 1:
        return scope.relation(node.parts[0].name) is not None
    return isinstance(node, exp.Unnest)


def columns_of(outputs: Columns) -> tuple[tuple[str, Type], ...]:
    """Names and types of a query's columns."""
    return tuple((each.name, each.type) for each in outputs)

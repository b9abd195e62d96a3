"""INSERT, UPDATE and DELETE -> the values that the engine runs."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from emulator import errors
from emulator.sql.coerce import require
from emulator.sql.parsed import ConflictClause, Parsed
from emulator.sql.proto_updates import FieldUpdates
from emulator.sql.queries import QueryCompiler
from emulator.sql.relations import find_forced_index, relation_columns, table_relation
from emulator.sql.schema_texts import read_schema_expression
from emulator.sql.scope import Context, Relation, Scope
from emulator.sql.set_operations import outer_columns
from emulator.sql.statements import Delete, Insert, OnConflict, Returning, Update
from emulator.sql.token_calls import refuse_token_lists
from emulator.sql.types import Typed, drop_length
from emulator.values.requests import ResultColumn
from emulator.values.types import STRING
from spanner_schema.model.schema import Column, Schema, Table

DEFAULT_WORD = "DEFAULT"


class DmlCompiler:
    """Compiles the three statements; ``queries`` compiles the queries in them."""

    def __init__(self, queries: QueryCompiler) -> None:
        self._queries = queries
        self._expressions = queries.expressions

    def insert(self, parsed: Parsed, context: Context) -> Insert:
        """INSERT [OR UPDATE | OR IGNORE]."""
        node = parsed.tree
        target = node.this
        if not isinstance(target, exp.Schema):
            raise errors.invalid_argument("INSERT must specify a column list")
        table = target_table(target.this, context)
        columns = tuple(assignable_column(table, each.name) for each in target.expressions)
        source = node.expression
        if isinstance(source, exp.Values):
            rows = [self._row(each, table, columns, context) for each in source.expressions]
            sql = "VALUES " + ", ".join(f"({', '.join(row)})" for row in rows)
        elif isinstance(source, exp.Query):
            sql = self._compile_select(source, columns, context)
        else:
            raise errors.invalid_argument("INSERT must have VALUES or a query")
        names = tuple(c.name for c in columns)
        if len({name.casefold() for name in names}) != len(names):
            raise errors.invalid_argument("INSERT has columns with duplicate name")
        row = table_relation(table, table.name)
        if context.conversions is not None:
            row = replace(row, alias=target.this.alias or row.alias)
        returning = self._compile_returning(parsed, table, row, context)
        on_conflict = self._compile_on_conflict(parsed, table, row, context)
        return Insert(
            table.name,
            names,
            sql,
            parsed.conflict or "insert",
            context.bindings(STRING),
            tuple(context.tables),
            returning,
            on_conflict,
        )

    def _compile_on_conflict(
        self, parsed: Parsed, table: Table, row: Relation, context: Context
    ) -> OnConflict | None:
        """ON CONFLICT ... DO NOTHING | DO UPDATE."""
        clause = parsed.on_conflict
        if clause is None:
            return None
        update = clause.update
        if parsed.conflict:
            raise errors.invalid_argument(
                "INSERT OR and ON CONFLICT are not allowed in one statement"
            )
        keys = conflict_keys(clause, table, context.schema)
        if update is None:
            return OnConflict(keys)
        if not clause.columns and not clause.constraint:
            raise errors.invalid_argument("ON CONFLICT DO UPDATE needs a conflict target")
        scope = Scope([row, excluded_row(table)])
        assignments = self._assignments(update, table, row.alias, scope, context, upserts=True)
        where = update.args.get("where")
        test = "TRUE"
        if where is not None:
            where_clause = "The WHERE clause of ON CONFLICT"
            test = self._expressions.boolean(where.this, scope, context, where_clause).sql
        return OnConflict(keys, assignments, test)

    def _assignments(
        self,
        node: exp.Expr,
        table: Table,
        alias: str,
        scope: Scope,
        context: Context,
        upserts: bool = False,
    ) -> tuple[tuple[str, str], ...]:
        """SET: columns, or fields of them, and what they become. One that ``upserts`` may name the
        key, as the PostgreSQL dialect demands: ``DO UPDATE SET Id = excluded.Id``."""
        assignments: list[tuple[str, str]] = []
        fields = FieldUpdates(table, alias, scope, context)
        for each in node.expressions:
            place = fields.find(each.this) if isinstance(each, exp.EQ) else None
            if place is not None:
                value = self._expressions.compile(each.expression, scope, context)
                fields.add(place, value)
                continue
            if not isinstance(each, exp.EQ) or not isinstance(each.this, exp.Column):
                raise errors.invalid_argument("SET needs assignments of the form column = value")
            column = assignable_column(table, assigned_name(each.this, alias))
            if any(p.column.casefold() == column.name.casefold() for p in table.primary_key):
                if upserts and names_excluded(each.expression, column.name):
                    continue  # the key that was found
                raise errors.invalid_argument(
                    f"Cannot UPDATE value on non-writable column: {column.name}"
                )
            assignments.append((column.name, self._value(each.expression, column, scope, context)))
        assignments += fields.assignments()
        if len({name for name, _ in assignments}) != len(assignments):
            raise errors.invalid_argument("UPDATE assigns a column twice")
        return tuple(assignments)

    def update(self, parsed: Parsed, context: Context) -> Update:
        """UPDATE t SET ... WHERE ..."""
        node = parsed.tree
        table, alias, index = self._target(node.this, context)
        scope = table_scope(table, alias)
        if node.args.get("from_") or node.args.get("joins"):
            raise errors.invalid_argument("UPDATE takes no FROM clause")
        assignments = self._assignments(node, table, alias, scope, context)
        where = self._where(node, scope, context, "UPDATE")
        return Update(
            table.name,
            alias,
            assignments,
            where,
            context.bindings(STRING),
            tuple(context.tables),
            index,
            self._compile_returning(parsed, table, table_relation(table, alias), context),
        )

    def delete(self, parsed: Parsed, context: Context) -> Delete:
        """DELETE [FROM] t WHERE ..."""
        node = parsed.tree
        table, alias, index = self._target(node.this, context)
        scope = table_scope(table, alias)
        where = self._where(node, scope, context, "DELETE")
        return Delete(
            table.name,
            alias,
            where,
            context.bindings(STRING),
            tuple(context.tables),
            index,
            self._compile_returning(parsed, table, table_relation(table, alias), context),
        )

    def _target(self, node: exp.Expr | None, context: Context) -> tuple[Table, str, str | None]:
        table = target_table(node, context)
        assert isinstance(node, exp.Table)
        index = find_forced_index(node, table, context)
        return table, node.alias or node.name, index.name if index else None

    def _where(self, node: exp.Expr, scope: Scope, context: Context, word: str) -> str:
        where = node.args.get("where")
        if where is None:
            raise errors.invalid_argument(f"{word} must have a WHERE clause")
        return self._expressions.boolean(where.this, scope, context, "WHERE clause").sql

    def _row(
        self,
        node: exp.Expr,
        table: Table,
        columns: tuple[Column, ...],
        context: Context,
    ) -> list[str]:
        values = node.expressions if isinstance(node, exp.Tuple) else [node]
        values = [v.this if isinstance(v, exp.Paren) else v for v in values]
        self.check_count(len(values), len(columns))
        scope = Scope()
        return [
            self._value(value, column, scope, context)
            for value, column in zip(values, columns, strict=True)
        ]

    def check_count(self, values: int, columns: int) -> None:
        """INVALID_ARGUMENT where there are not as many values as columns."""
        if values != columns:
            raise errors.invalid_argument(
                f"Inserted row has wrong column count; Has {values}, expected {columns}"
            )

    def _value(self, node: exp.Expr, column: Column, scope: Scope, context: Context) -> str:
        if isinstance(node, exp.Var | exp.Column) and node.name.upper() == DEFAULT_WORD:
            return self._default(column, context)
        item = self._expressions.compile(node, scope, context)
        self._check_pending(node, column)
        return self.convert(item, column, context, f"Value for column {column.name}").sql

    def convert(self, item: Typed, column: Column, context: Context, where: str) -> Typed:
        """A value as its column takes it. Raises INVALID_ARGUMENT."""
        return require(item, column.type, context, where)

    def _check_pending(self, node: exp.Expr, column: Column) -> None:
        """Spanner: PENDING_COMMIT_TIMESTAMP() only as the whole value of such a column."""
        for each in node.find_all(exp.Anonymous):
            if each.name.upper() == "PENDING_COMMIT_TIMESTAMP" and (
                each is not node or not column.allow_commit_timestamp
            ):
                raise errors.invalid_argument(
                    "The PENDING_COMMIT_TIMESTAMP() function may only be used as a value for"
                    " INSERT or UPDATE of an appropriately typed column with"
                    " allow_commit_timestamp=true"
                )

    def _default(self, column: Column, context: Context) -> str:
        if column.identity is not None:
            # The engine draws the value when the column is left out.
            raise errors.unimplemented(f"DEFAULT as a value of the IDENTITY column {column.name}")
        if column.default is None:
            return "NULL"
        return default_value(column, self._queries, context).sql

    def _compile_select(
        self, node: exp.Query, columns: tuple[Column, ...], context: Context
    ) -> str:
        for each in node.find_all(exp.Anonymous):
            if each.name.upper() == "PENDING_COMMIT_TIMESTAMP":
                raise errors.invalid_argument(
                    "The PENDING_COMMIT_TIMESTAMP() function may only be used as a value for"
                    " INSERT or UPDATE of an appropriately typed column; not in the SELECT of an"
                    " INSERT"
                )
        sql, outputs = self._queries.query(node, None, context)
        self.check_count(len(outputs), len(columns))
        names = [f'"c{number}"' for number in range(len(outputs))]
        values = [
            self.convert(replace(item, sql=name), column, context, f"Value for {column.name}").sql
            for name, item, column in zip(names, outer_columns(outputs), columns, strict=True)
        ]
        listed = ", ".join(names)
        return f'WITH "$i"({listed}) AS ({sql}) SELECT {", ".join(values)} FROM "$i"'

    def _compile_returning(
        self, parsed: Parsed, table: Table, row: Relation, context: Context
    ) -> Returning | None:
        if parsed.returning is None:
            return None
        scope = Scope([row])
        columns, expressions = [], []
        for each in parsed.returning:
            if isinstance(each, exp.Star) or is_row_of(each, row.alias):
                items = [(i.column, i) for i in relation_columns(row)]
            else:
                typed = self._expressions.compile(each, scope, context)
                name = each.alias if isinstance(each, exp.Alias) else typed.column
                items = [(name, typed)]
            refuse_token_lists(typed.type for _, typed in items if typed.type is not None)
            for name, typed in items:
                check_returned(typed, table)
                columns.append(ResultColumn(name, drop_length(typed.type or STRING)))
                expressions.append(typed.sql)
        if parsed.action is not None:
            columns.append(ResultColumn(parsed.action, STRING))
        return Returning(tuple(columns), tuple(expressions), parsed.action is not None)


def excluded_row(table: Table) -> Relation:
    """EXCLUDED: the row that could not be inserted."""
    columns = [
        Typed(f":excluded_{place}", drop_length(column.type), column=column.name)
        for place, column in enumerate(table.columns)
    ]
    return Relation("excluded", (), hidden=frozenset(), qualified=tuple(columns))


def conflict_keys(
    clause: ConflictClause, table: Table, schema: Schema
) -> tuple[tuple[str, ...], ...]:
    """The columns of the constraints that count; INVALID_ARGUMENT for a target that is none."""
    unique = [each for each in schema.indexes_of(table.name) if each.unique]
    by_name = {each.name.casefold(): tuple(p.column for p in each.parts) for each in unique}
    keys = [tuple(part.column for part in table.primary_key), *by_name.values()]
    if clause.constraint:
        if clause.constraint.casefold() not in by_name:
            raise errors.invalid_argument(
                f"ON CONFLICT: table {table.name} has no unique constraint {clause.constraint}"
            )
        return (by_name[clause.constraint.casefold()],)
    if not clause.columns:
        return tuple(keys)
    wanted = sorted(name.casefold() for name in clause.columns)
    for key in keys:
        if sorted(name.casefold() for name in key) == wanted:
            return (key,)
    raise errors.invalid_argument(
        f"ON CONFLICT: neither the primary key nor a unique index of table {table.name} has the"
        f" columns ({', '.join(clause.columns)})"
    )


def default_value(column: Column, queries: QueryCompiler, context: Context) -> Typed:
    """The DEFAULT of a column as its type."""
    tree = read_schema_expression(column.default or "NULL", context.schema)
    item = queries.expressions.compile(tree, Scope(), context)
    return require(item, column.type, context, f"The default of {column.name}")


def target_table(node: exp.Expr | None, context: Context) -> Table:
    """The table that a DML statement writes."""
    if not isinstance(node, exp.Table):
        raise errors.invalid_argument("DML needs a table to write to")
    name = ".".join(part.name for part in node.parts)
    table = context.find_table(name)
    if table is None:
        raise context.table_not_found(name)
    return table


def assigned_name(column: exp.Column, alias: str) -> str:
    """The column that SET names, which may be qualified with the alias of the table."""
    if column.table and column.table.casefold() != alias.casefold():
        raise errors.invalid_argument(f"Unrecognized name: {column.table}")
    return column.name


def table_scope(table: Table, alias: str) -> Scope:
    """A scope with the columns of one table."""
    return Scope([table_relation(table, alias)])


def assignable_column(table: Table, name: str) -> Column:
    """A column that DML may assign."""
    column = table.column(name)
    if column is None:
        raise errors.invalid_argument(f"Column {name} is not present in table {table.name}")
    if column.generated is not None:
        raise errors.invalid_argument(f"Cannot write into generated column `{table.name}.{name}`.")
    return column


def is_row_of(node: exp.Expr, alias: str) -> bool:
    """Whether an expression is t.*, of the table that is written."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Star):
        return False
    others = any(node.this.args.get(name) for name in ("except_", "replace", "rename"))
    return not others and node.table.casefold() == alias.casefold()


def check_returned(typed: Typed, table: Table) -> None:
    """Spanner: THEN RETURN cannot return a commit timestamp that is not chosen yet."""
    column = table.column(typed.column) if typed.column else None
    if column is not None and column.on_update is not None:
        raise errors.invalid_argument(
            f"Column {column.name} with a pending commit timestamp cannot be returned"
        )


def names_excluded(value: exp.Expr, column: str) -> bool:
    """Whether a value is that of a column in the row that could not be inserted."""
    if not isinstance(value, exp.Column):
        return False
    return value.table.casefold() == "excluded" and value.name.casefold() == column.casefold()

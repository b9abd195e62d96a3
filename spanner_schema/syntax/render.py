"""Steps and schemas -> DDL text, in the dialect's spelling."""

from __future__ import annotations

from collections.abc import Iterable
from functools import singledispatch

from spanner_schema.model import steps
from spanner_schema.model.column_types import Type
from spanner_schema.model.errors import DdlError
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.model.steps import Step
from spanner_schema.syntax.functions import list_early_functions
from spanner_schema.syntax.googlesql import spelling as googlesql
from spanner_schema.syntax.grants import render_grants
from spanner_schema.syntax.postgres.spelling import PostgreSqlSpelling
from spanner_schema.syntax.spelling import Spelling
from spanner_schema.syntax.table_order import order_tables

ROW = googlesql.ROW
SPELLINGS: dict[Dialect, Spelling] = {
    Dialect.GOOGLESQL: googlesql.GoogleSqlSpelling(),
    Dialect.POSTGRESQL: PostgreSqlSpelling(),
}
KINDS_BEFORE_TABLES = frozenset({"PROTO BUNDLE", "SEQUENCE", "PLACEMENT", "LOCALITY GROUP"})
"""Tables may use these; other objects that are kept as text may use tables."""


def render_step(step: Step, dialect: Dialect = Dialect.GOOGLESQL) -> str:
    """The statement of a step, without a semicolon. Raises DdlError if the dialect has none."""
    return str(render_by_type(step, SPELLINGS[dialect]))


def render_schema(schema: Schema, database: str | None = None) -> list[str]:
    """Statements that create the same schema again, in an order that works.

    With the name of the ``database`` its options are told, too.
    """
    spelling = SPELLINGS[schema.dialect]
    functions = list_early_functions(schema)
    early = [i for i in schema.verbatim if i.kind in KINDS_BEFORE_TABLES or i in functions]
    before = [item.text for item in early]
    after = [item.text for item in schema.verbatim if item not in early]
    options = schema.options.items() if database is not None else ()
    return [
        *(spelling.alter_database(database or "", [option]) for option in options),
        *(f"CREATE SCHEMA {spelling.quote_name(name)}" for name in schema.named_schemas),
        *before,
        *map(spelling.create_table, order_tables(schema.tables)),
        *map(spelling.create_index, schema.indexes),
        *after,
        *map(spelling.create_change_stream, schema.change_streams),
        *render_grants(schema.grants, spelling.quote_name, spelling.quote_column, schema.dialect),
    ]


def render_type(type_: Type, dialect: Dialect = Dialect.GOOGLESQL) -> str:
    """A type as a dialect writes it."""
    return SPELLINGS[dialect].write_type(type_)


def row_alias(table: str, columns: Iterable[str], dialect: Dialect = Dialect.GOOGLESQL) -> str:
    """What follows a table in a query with these columns, if its name would hide one of them."""
    return SPELLINGS[dialect].write_row_alias(table, columns)


def render_source(
    table: str, columns: Iterable[str], dialect: Dialect, index: str | None = None
) -> str:
    """A table in FROM, in a query with these columns that reads an index, if one is given."""
    spelling = SPELLINGS[dialect]
    hint = render_index_hint(index, dialect)
    return spelling.quote_name(table) + hint + spelling.write_row_alias(table, columns)


def render_index_hint(index: str | None, dialect: Dialect) -> str:
    """What follows a table in a query to read an index of it; nothing without one."""
    return SPELLINGS[dialect].write_index_hint(index) if index is not None else ""


def quote_name(name: str, dialect: Dialect = Dialect.GOOGLESQL) -> str:
    """A name, quoted where it must be; a named schema's part by part."""
    return SPELLINGS[dialect].quote_name(name)


def quote_column(name: str, dialect: Dialect = Dialect.GOOGLESQL) -> str:
    """The name of a column, quoted where it must be."""
    return SPELLINGS[dialect].quote_column(name)


@singledispatch
def render_by_type(step: object, spelling: Spelling) -> str:
    raise DdlError(f"{type(step).__name__} cannot be rendered")


def render_alter_table(table: str, action: str, spelling: Spelling) -> str:
    """ALTER TABLE t action."""
    return f"ALTER TABLE {spelling.quote_name(table)} {action}"


def render_alter_column(table: str, column: str, action: str, spelling: Spelling) -> str:
    """ALTER TABLE t ALTER COLUMN c action."""
    action = f"ALTER COLUMN {spelling.quote_column(column)} {action}"
    return render_alter_table(table, action, spelling)


@render_by_type.register
def render_create_table(step: steps.CreateTable, spelling: Spelling) -> str:
    """CREATE TABLE."""
    return spelling.create_table(step.table, step.if_not_exists)


@render_by_type.register
def render_rename_tables(step: steps.RenameTables, spelling: Spelling) -> str:
    """RENAME TABLE."""
    if step.synonym is None:
        return spelling.rename_tables(step.renames)
    ((old, new),) = step.renames
    return render_alter_table(old, spelling.rename_with_synonym(new, step.synonym), spelling)


@render_by_type.register
def render_add_synonym(step: steps.AddSynonym, spelling: Spelling) -> str:
    """ADD SYNONYM."""
    action = f"ADD SYNONYM {spelling.quote_name(step.synonym)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_drop_synonym(step: steps.DropSynonym, spelling: Spelling) -> str:
    """DROP SYNONYM."""
    action = f"DROP SYNONYM {spelling.quote_name(step.synonym)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_drop_table(step: steps.DropTable, spelling: Spelling) -> str:
    """DROP TABLE."""
    return f"DROP TABLE {'IF EXISTS ' if step.if_exists else ''}{spelling.quote_name(step.name)}"


@render_by_type.register
def render_add_column(step: steps.AddColumn, spelling: Spelling) -> str:
    """ADD COLUMN."""
    optional = "IF NOT EXISTS " if step.if_not_exists else ""
    action = f"ADD COLUMN {optional}{spelling.write_column(step.column)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_drop_column(step: steps.DropColumn, spelling: Spelling) -> str:
    """DROP COLUMN."""
    action = f"DROP COLUMN {spelling.quote_column(step.column)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_redefine_column(step: steps.AlterColumn, spelling: Spelling) -> str:
    """ALTER COLUMN with a whole definition."""
    action = f"ALTER COLUMN {spelling.redefine_column(step.column)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_set_not_null(step: steps.SetNotNull, spelling: Spelling) -> str:
    """SET NOT NULL | DROP NOT NULL."""
    action = spelling.set_not_null(step.not_null)
    return render_alter_column(step.table, step.column, action, spelling)


@render_by_type.register
def render_set_type(step: steps.SetType, spelling: Spelling) -> str:
    """ALTER COLUMN TYPE."""
    text = render_alter_column(step.table, step.column, spelling.set_type(step.type), spelling)
    if step.not_null is None:
        return text
    column = spelling.quote_column(step.column)
    return f"{text}, ALTER COLUMN {column} {spelling.set_not_null(step.not_null)}"


@render_by_type.register
def render_set_default(step: steps.SetDefault, spelling: Spelling) -> str:
    """SET DEFAULT | DROP DEFAULT."""
    action = "DROP DEFAULT" if step.expression is None else f"SET DEFAULT ({step.expression})"
    return render_alter_column(step.table, step.column, action, spelling)


@render_by_type.register
def render_set_on_update(step: steps.SetOnUpdate, spelling: Spelling) -> str:
    """SET ON UPDATE | DROP ON UPDATE."""
    action = "DROP ON UPDATE" if step.expression is None else f"SET ON UPDATE ({step.expression})"
    return render_alter_column(step.table, step.column, action, spelling)


@render_by_type.register
def render_set_column_options(step: steps.SetColumnOptions, spelling: Spelling) -> str:
    """SET OPTIONS of a column."""
    action = spelling.set_column_options(step.options)
    return render_alter_column(step.table, step.column, action, spelling)


@render_by_type.register
def render_set_table_options(step: steps.SetTableOptions, spelling: Spelling) -> str:
    """SET OPTIONS of a table."""
    return render_alter_table(step.table, spelling.set_options(step.options), spelling)


@render_by_type.register
def render_set_index_options(step: steps.SetIndexOptions, spelling: Spelling) -> str:
    """SET OPTIONS of an index."""
    return f"ALTER INDEX {spelling.quote_name(step.index)} {spelling.set_options(step.options)}"


@render_by_type.register
def render_add_foreign_key(step: steps.AddForeignKey, spelling: Spelling) -> str:
    """ADD FOREIGN KEY."""
    action = f"ADD {spelling.write_foreign_key(step.foreign_key)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_add_check(step: steps.AddCheck, spelling: Spelling) -> str:
    """ADD CHECK."""
    return render_alter_table(step.table, f"ADD {spelling.write_check(step.check)}", spelling)


@render_by_type.register
def render_drop_constraint(step: steps.DropConstraint, spelling: Spelling) -> str:
    """DROP CONSTRAINT."""
    action = f"DROP CONSTRAINT {spelling.quote_column(step.name)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_set_row_deletion_policy(step: steps.SetRowDeletionPolicy, spelling: Spelling) -> str:
    """ADD | REPLACE | DROP ROW DELETION POLICY."""
    if step.policy is None:
        return render_alter_table(step.table, spelling.write_drop_policy(), spelling)
    word = spelling.replace_policy if step.replaces else "ADD"
    action = f"{word} {spelling.write_policy(step.policy)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_set_on_delete(step: steps.SetOnDelete, spelling: Spelling) -> str:
    """SET ON DELETE."""
    return render_alter_table(step.table, f"SET ON DELETE {step.on_delete.value}", spelling)


@render_by_type.register
def render_set_interleave(step: steps.SetInterleave, spelling: Spelling) -> str:
    """SET INTERLEAVE IN."""
    action = f"SET {spelling.write_interleave(step.interleave)}"
    return render_alter_table(step.table, action, spelling)


@render_by_type.register
def render_create_index(step: steps.CreateIndex, spelling: Spelling) -> str:
    """CREATE INDEX."""
    return spelling.create_index(step.index, step.if_not_exists)


@render_by_type.register
def render_drop_index(step: steps.DropIndex, spelling: Spelling) -> str:
    """DROP INDEX."""
    return f"DROP INDEX {'IF EXISTS ' if step.if_exists else ''}{spelling.quote_name(step.name)}"


@render_by_type.register
def render_alter_index_storing(step: steps.AlterIndexStoring, spelling: Spelling) -> str:
    """ALTER INDEX ADD | DROP a stored column."""
    action = f"{'ADD' if step.add else 'DROP'} {spelling.stored_column}"
    column = spelling.quote_column(step.column)
    return f"ALTER INDEX {spelling.quote_name(step.index)} {action} {column}"


@render_by_type.register
def render_create_change_stream(step: steps.CreateChangeStream, spelling: Spelling) -> str:
    """CREATE CHANGE STREAM."""
    text = spelling.create_change_stream(step.change_stream)
    optional = "CREATE CHANGE STREAM IF NOT EXISTS"
    return text.replace("CREATE CHANGE STREAM", optional, 1) if step.if_not_exists else text


@render_by_type.register
def render_alter_change_stream(step: steps.AlterChangeStream, spelling: Spelling) -> str:
    """ALTER CHANGE STREAM: what it watches, its options, or both."""
    stream = step.change_stream
    watches = spelling.write_watches(stream)
    if "options" not in step.changes:
        action = f"SET{watches}" if watches else "DROP FOR ALL"
    else:
        action = f"SET {spelling.write_stream_options(stream.options)}"
        if "watches" in step.changes:
            action = f"{watches.lstrip()} {action}"
    return f"ALTER CHANGE STREAM {spelling.quote_name(stream.name)} {action}"


@render_by_type.register
def render_drop_change_stream(step: steps.DropChangeStream, spelling: Spelling) -> str:
    """DROP CHANGE STREAM."""
    optional = "IF EXISTS " if step.if_exists else ""
    return f"DROP CHANGE STREAM {optional}{spelling.quote_name(step.name)}"


@render_by_type.register
def render_alter_database(step: steps.AlterDatabase, spelling: Spelling) -> str:
    """ALTER DATABASE SET options."""
    return spelling.alter_database(step.database, step.options)


@render_by_type.register
def render_create_named_schema(step: steps.CreateNamedSchema, spelling: Spelling) -> str:
    """CREATE SCHEMA."""
    optional = "IF NOT EXISTS " if step.if_not_exists else ""
    return f"CREATE SCHEMA {optional}{spelling.quote_name(step.name)}"


@render_by_type.register
def render_drop_named_schema(step: steps.DropNamedSchema, spelling: Spelling) -> str:
    """DROP SCHEMA."""
    return f"DROP SCHEMA {'IF EXISTS ' if step.if_exists else ''}{spelling.quote_name(step.name)}"


@render_by_type.register
def render_create_verbatim(step: steps.CreateVerbatim, spelling: Spelling) -> str:
    """CREATE of an object that is kept as text."""
    return step.item.text


@render_by_type.register
def render_drop_verbatim(step: steps.DropVerbatim, spelling: Spelling) -> str:
    """DROP of an object that is kept as text; a proto bundle has no name."""
    optional = "IF EXISTS " if step.if_exists else ""
    return f"DROP {step.kind} {optional}{spelling.quote_name(step.name)}".rstrip()


@render_by_type.register
def render_alter_table_if_exists(step: steps.AlterTableIfExists, spelling: Spelling) -> str:
    """ALTER TABLE IF EXISTS."""
    return str(render_by_type(step.step, spelling)).replace(
        "ALTER TABLE", "ALTER TABLE IF EXISTS", 1
    )


@render_by_type.register
def render_other_statement(step: steps.OtherStatement, spelling: Spelling) -> str:
    """A statement that is kept as text."""
    return step.text

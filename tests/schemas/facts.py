"""Facts of the tables of a database, by plain reads of INFORMATION_SCHEMA."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import Any

from fixtures.table_facts import ColumnFacts, Reference, TableFacts, parse_type
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.schema import Dialect

TABLES = """\
SELECT table_schema, table_name, parent_table_name, interleave_type,
  row_deletion_policy_expression
FROM information_schema.tables WHERE table_type = 'BASE TABLE'"""
COLUMNS = """\
SELECT table_schema, table_name, column_name, spanner_type, is_nullable, is_generated,
  column_default, is_identity{hidden}
FROM information_schema.columns ORDER BY table_schema, table_name, ordinal_position"""
STAMPS = """\
SELECT table_schema, table_name, column_name FROM information_schema.column_options
WHERE option_name = 'allow_commit_timestamp' AND UPPER(option_value) = 'TRUE'"""
KEYS = """\
SELECT table_schema, table_name, column_name FROM information_schema.index_columns
WHERE index_type = 'PRIMARY_KEY' ORDER BY table_schema, table_name, ordinal_position"""
USES = """\
SELECT constraint_schema, constraint_name, table_schema, table_name, column_name,
  position_in_unique_constraint
FROM information_schema.key_column_usage
ORDER BY constraint_schema, constraint_name, ordinal_position"""
REFERENCES = """\
SELECT constraint_schema, constraint_name, unique_constraint_schema, unique_constraint_name
FROM information_schema.referential_constraints"""
CHECKS = """\
SELECT t.table_schema, t.table_name, c.check_clause
FROM information_schema.check_constraints AS c
JOIN information_schema.table_constraints AS t
  ON t.constraint_schema = c.constraint_schema AND t.constraint_name = c.constraint_name"""
SYSTEM = {"information_schema", "spanner_sys", "pg_catalog"}
OWN = "spannerwatcher"
"""How the names of the product's own tables begin."""


def is_own(text: str) -> bool:
    """Whether a name or a statement is of the product's own tables."""
    return OWN in text.casefold()


def read_facts(database: Database, dialect: Dialect) -> list[TableFacts]:
    """All tables but the system's and the product's own."""
    ask = Asker(database)
    columns, keys, checks = read_columns(ask, dialect), read_keys(ask), read_checks(ask)
    references = read_references(ask)
    tables = []
    for schema, table, parent, kind, policy in ask(TABLES):
        name = join_name(schema, table)
        if schema.casefold() in SYSTEM or is_own(table):
            continue
        enforced = parent and kind != "IN"
        facts = TableFacts(
            name,
            {column.name: mark_expiring(column, policy) for column in columns[name]},
            tuple(keys[name]),
            join_name(schema, parent) if enforced else None,
            tuple(references[name]),
            tuple(checks[name]),
        )
        tables.append(facts)
    return tables


def mark_expiring(column: ColumnFacts, policy: str | None) -> ColumnFacts:
    """A column of a table that has such a row deletion policy."""
    return replace(column, expires=column.name in re.findall(r"\w+", policy or ""))


class Asker:
    """Runs queries of INFORMATION_SCHEMA."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        with self._database.snapshot() as snapshot:
            return [tuple(row) for row in snapshot.execute_sql(sql)]


def join_name(schema: str, table: str) -> str:
    """The name of a table with that of its schema, if it is not the default one."""
    return table if schema in ("", "public") else f"{schema}.{table}"


def read_columns(ask: Asker, dialect: Dialect) -> dict[str, list[ColumnFacts]]:
    """The columns of each table, in their order."""
    googlesql = dialect is Dialect.GOOGLESQL
    found = defaultdict(list)
    for schema, table, name, type_, nullable, generated, default, identity, *hidden in ask(
        COLUMNS.format(hidden=", is_hidden" if googlesql else "")
    ):
        column = ColumnFacts(
            name,
            parse_type(type_, dialect),
            nullable == "YES",
            generated == "ALWAYS",
            default if default is None else str(default),
            identity == "YES",
            type_ == "spanner.commit_timestamp",
            hidden in (["YES"], [True]),
        )
        found[join_name(schema, table)].append(column)
    for schema, table, name in ask(STAMPS) if googlesql else ():
        of_table = found[join_name(schema, table)]
        of_table[:] = [replace(c, stamp=True) if c.name == name else c for c in of_table]
    return found


def read_keys(ask: Asker) -> dict[str, list[str]]:
    """The columns of each primary key, in their order."""
    found = defaultdict(list)
    for schema, table, column in ask(KEYS):
        found[join_name(schema, table)].append(column)
    return found


def read_checks(ask: Asker) -> dict[str, list[str]]:
    """The CHECKs of each table, but those of NOT NULL."""
    found = defaultdict(list)
    for schema, table, clause in ask(CHECKS):
        if "IS NOT NULL" not in clause.upper():
            found[join_name(schema, table)].append(clause)
    return found


def read_references(ask: Asker) -> dict[str, list[Reference]]:
    """The foreign keys of each table."""
    uses = defaultdict(list)
    for schema, constraint, table_schema, table, column, place in ask(USES):
        uses[schema, constraint].append((join_name(table_schema, table), column, place))
    found = defaultdict(list)
    for schema, constraint, unique_schema, unique in ask(REFERENCES):
        mine, theirs = uses[schema, constraint], uses[unique_schema, unique]
        # A key of columns that are no key there is not listed: its rows are refused then.
        if theirs and len(mine) <= len(theirs):
            pairs = [(column, theirs[place - 1][1]) for _, column, place in mine]
            found[mine[0][0]].append(Reference(theirs[0][0], tuple(pairs)))
    return found

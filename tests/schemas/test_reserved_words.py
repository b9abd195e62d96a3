"""Tables and columns that are called as words of SQL, the whole way, in both dialects."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import pytest
from google.cloud.spanner_v1.instance import Instance

from schemas.cases import SchemaCase, Statement
from schemas.run import judge
from schemas.way import ENGINES, Engine
from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.googlesql import reserved as googlesql
from spanner_schema.syntax.postgres import reserved as postgres

GOOGLESQL = """
ALL AND ANY ARRAY AS ASC ASSERT_ROWS_MODIFIED AT BETWEEN BY CASE CAST COLLATE CONTAINS CREATE CROSS
CUBE CURRENT DEFAULT DEFINE DESC DISTINCT ELSE END ENUM ESCAPE EXCEPT EXCLUDE EXISTS EXTRACT FALSE
FETCH FOLLOWING FOR FROM FULL GRAPH_TABLE GROUP GROUPING GROUPS HASH HAVING IF IGNORE IN INNER
INTERSECT INTERVAL INTO IS JOIN LATERAL LEFT LIKE LIMIT LOOKUP MERGE NATURAL NEW NO NOT NULL NULLS
OF ON OR ORDER OUTER OVER PARTITION PRECEDING PROTO RANGE RECURSIVE RESPECT RIGHT ROLLUP ROWS SELECT
SET SOME STRUCT TABLESAMPLE THEN TO TREAT TRUE UNBOUNDED UNION UNNEST USING WHEN WHERE WINDOW WITH
WITHIN
"""
"""docs.cloud.google.com/spanner/docs/reference/standard-sql/lexical, "Reserved keywords"."""
CLAUSES = """
CHECK CONSTRAINT FOREIGN PRIMARY SYNONYM
ADD ALTER CHANGE COLUMN DELETE DROP GENERATED HIDDEN INDEX INSERT INTERLEAVE KEY OPTIONS PARENT
PLACEMENT POLICY REFERENCES ROW STORED STORING STREAM TABLE UNIQUE UPDATE VALUES VIEW
"""
"""Not reserved, but words of DDL and DML."""
POSTGRES = """
all analyse analyze and any array as asc asymmetric both case cast check collate column constraint
create current_catalog current_date current_role current_time current_timestamp current_user default
deferrable desc distinct do else end except false fetch for foreign from grant group having in
initially intersect into lateral leading limit localtime localtimestamp not null offset on only or
order placing primary references returning select session_user some symmetric system_user table then
to trailing true union unique user using variadic when where window with
authorization binary collation concurrently cross current_schema freeze full ilike inner is isnull
join left like natural notnull outer overlaps right similar tablesample verbose
between bigint bit boolean char character coalesce dec decimal exists extract float greatest
grouping inout int integer interval json json_array json_arrayagg json_exists json_object
json_objectagg json_query json_scalar json_serialize json_table json_value least merge_action
national nchar none normalize nullif numeric out overlay position precision real row setof smallint
substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement xmlexists
xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
"""
"""PostgreSQL 17, appendix C: reserved, and those that cannot be a function or a type."""
WORDS = {
    Dialect.GOOGLESQL: f"{GOOGLESQL} {CLAUSES}".split(),
    Dialect.POSTGRESQL: f"{POSTGRES} {CLAUSES.lower()}".split(),
}
KEY_COLUMNS = 14
"""Two more are in the key of the index: Spanner's limit is 16."""


def quote(name: str, dialect: Dialect) -> str:
    return f"`{name}`" if dialect is Dialect.GOOGLESQL else f'"{name}"'


def write_table(name: str, key: Sequence[str], others: Sequence[str], dialect: Dialect) -> str:
    """A table whose names are all quoted."""
    text = "STRING(99)" if dialect is Dialect.GOOGLESQL else "character varying(99)"
    columns = [f"{quote(column, dialect)} {text} NOT NULL" for column in key]
    columns += [f"{quote(column, dialect)} {text}" for column in others]
    names = ", ".join(quote(column, dialect) for column in key)
    if dialect is Dialect.GOOGLESQL:
        return f"CREATE TABLE {quote(name, dialect)} ({', '.join(columns)}) PRIMARY KEY ({names})"
    return f"CREATE TABLE {quote(name, dialect)} ({', '.join(columns)}, PRIMARY KEY ({names}))"


def split(words: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for first in range(0, len(words), size):
        yield words[first : first + size]


def list_words(dialect: Dialect) -> list[str]:
    return list(dict.fromkeys(WORDS[dialect]))


def check(
    instance: Instance, dialect: Dialect, statements: Sequence[str], engines: Sequence[Engine]
) -> None:
    texts = tuple(Statement("ddl", sql) for sql in statements)
    outcome = judge(SchemaCase("words", dialect, "", texts), instance, 1, engines)
    assert outcome.holds, outcome.problems
    assert not outcome.refused
    assert outcome.counts["tables watched"] == len(statements)
    assert outcome.counts["changes delivered"] >= len(statements)


@pytest.mark.essential
@pytest.mark.parametrize("dialect", Dialect)
def test_columns_may_be_called_as_any_word(instance: Instance, dialect: Dialect) -> None:
    """Each is in a key, which is hashed, and outside of one, where it is updated."""
    groups = list(split(list_words(dialect), KEY_COLUMNS))
    tables = [
        write_table(f"words{number}", key, groups[number - 1], dialect)
        for number, key in enumerate(groups)
    ]
    check(instance, dialect, tables, ENGINES)


@pytest.mark.parametrize("dialect", Dialect)
def test_tables_may_be_called_as_any_word(instance: Instance, dialect: Dialect) -> None:
    """The key of each is called as the table is, which hides its row in GoogleSQL."""
    words = list_words(dialect)
    check(instance, dialect, [write_table(word, [word], ["v"], dialect) for word in words], [])


def test_every_word_of_the_documentation_is_quoted() -> None:
    assert not set(GOOGLESQL.split()) - googlesql.QUOTED
    assert not set(POSTGRES.split()) - postgres.QUOTED
    assert set(GOOGLESQL.split()) == googlesql.RESERVED
    assert all(re.fullmatch(r"[a-z_]+", word) for word in postgres.QUOTED)

"""Live databases of the PostgreSQL dialect: statements run, and what they make can be polled."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from fixtures.postgres_databases import CreatePostgres
from fixtures.server import CreateDatabase
from fixtures.singers import address_of
from fixtures.warm_python import WARM_PYTHON
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ddl.migration.apply import apply_plan, read_schema, roll_back
from ddl.migration.plan import make_plan
from ddl.rules.evolve import parse_schema
from ddl.tracking.lint import DATABASE, LintContext, lint_schema
from ddl.tracking.status import count_index_rows, list_statuses
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.names import join_name
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.model.strategies import Modulo, Strategy
from spanner_schema.syntax.render import quote_name, render_schema
from spanner_schema.watched.tracked import find_trackings

PG = Dialect.POSTGRESQL


def read(database: Database, table: str, columns: Sequence[str]) -> list[list[Any]]:
    with database.snapshot() as snapshot:
        return list(snapshot.read(table, columns, KeySet(all_=True)))


SINGERS = """CREATE TABLE Singers (Id bigint PRIMARY KEY, name varchar(20), "Group" text,
    "order" double precision DEFAULT 1.5 CHECK ("order" > 0))"""


def run(database: Database, *arguments: str) -> str:
    """The output of a command."""
    command = [*WARM_PYTHON, "-c", "from watcher.cli import main; main()", "ddl", *arguments]
    result = subprocess.run(
        [*command, "--database", str(address_of(database))],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"COLUMNS": "200"},
    )
    assert result.returncode in {0, 1}, result.stderr
    return result.stdout


def test_every_command_speaks_the_dialect_of_the_database(
    create_postgres: CreatePostgres,
) -> None:
    database = create_postgres(SINGERS)
    before = read_schema(database)
    watch = ("-t", "SINGERS", "--shards", "4", "--storing", "NAME", "--storing", "group")
    planned = run(database, "plan", "--sql", *watch)
    assert "GENERATED ALWAYS AS (mod(mod(spanner.farm_fingerprint(id::text), 4) + 4, 4))" in planned
    assert 'INCLUDE (name, "Group") WHERE shard_id IS NOT NULL AND' in planned
    assert run(database, "apply", *watch).count(";\n") == 5
    with database.batch() as batch:
        batch.insert("singers", ("id", "name"), [(number, "n") for number in range(40)])
    (status,) = json.loads(run(database, "status", "--json"))
    assert (status["strategy"], status["shards"], status["index_rows"]) == ("automatic", 4, 40)
    assert "fewer-shards-than-nodes" in run(database, "lint", "--nodes", "9")
    assert json.loads(run(database, "lint", "--json")) == []
    history = run(database, "changelog", "-t", "singers", "--apart", "--keep-days", "9", "--apply")
    assert "TTL INTERVAL '9 days' ON changed_at" in history
    assert read_schema(database).table("singers_history") is not None
    stream = ("--watch", "SINGERS(GROUP)", "--capture", "NEW_ROW", "--apply")
    assert run(database, "change-stream", "create", "named", *stream) == (
        "CREATE CHANGE STREAM named FOR singers(\"Group\") WITH (value_capture_type = 'NEW_ROW')\n"
    )
    run(database, "change-stream", "drop", "NAMED", "--apply")
    assert "DROP INDEX singers_by_shard_and_time;" in run(database, "rollback", "--dry-run")
    run(database, "rollback")
    database.update_ddl(["DROP TABLE singers_history"]).result(60)
    assert read_schema(database) == before
    assert len(read(database, "singers", ["id"])) == 40


# What Spanner's own printer makes of a plan: types, parentheses, no parentheses around DEFAULT.
PRINTED = """CREATE TABLE singers (
  id bigint NOT NULL, processed boolean,
  last_modified spanner.commit_timestamp DEFAULT SPANNER.PENDING_COMMIT_TIMESTAMP()
    ON UPDATE SPANNER.PENDING_COMMIT_TIMESTAMP(),
  shard_id bigint GENERATED ALWAYS AS ({shard}) VIRTUAL,
  PRIMARY KEY(id)
);
CREATE INDEX i ON singers(shard_id, last_modified)
  WHERE ((shard_id IS NOT NULL) AND (last_modified IS NOT NULL))"""
REMAINDER = "mod(spanner.farm_fingerprint((id)::text), '8'::bigint)"


@pytest.mark.parametrize(
    ("shard", "strategy", "shards"),
    [
        (f"mod(({REMAINDER} + '8'::bigint), '8'::bigint)", Strategy.AUTOMATIC, 8),
        (REMAINDER, Strategy.AUTOMATIC, 15),
        (f"({REMAINDER})::bigint", Strategy.AUTOMATIC, 15),
        (f"CASE WHEN processed THEN NULL::bigint ELSE {REMAINDER} END", Strategy.PROCESSED, 15),
    ],
)
def test_what_spanner_prints_is_known_as_watchable(
    shard: str, strategy: Strategy, shards: int
) -> None:
    schema = parse_schema(PRINTED.format(shard=shard), PG)
    (status,) = list_statuses(schema, ["singers"])
    assert (status.strategy, status.shards, status.index) == (str(strategy), shards, "i")
    assert make_plan(schema, ["singers"], WatchOptions(strategy=strategy)).empty


def test_names_are_never_longer_than_the_parser_reads(create_postgres: CreatePostgres) -> None:
    database = create_postgres(f"CREATE TABLE {'t' * 63} (id bigint PRIMARY KEY)")
    before = read_schema(database)
    with pytest.raises(PlanError, match=r"has more than 63 characters\. Choose a shorter one"):
        make_plan(before, ["t" * 63], WatchOptions(index="i" * 64))
    plan = make_plan(before, ["t" * 63], WatchOptions(index="i" * 63))
    apply_plan(database, plan)
    assert [index.name for index in read_schema(database).indexes] == ["i" * 63]
    roll_back(database)
    assert read_schema(database) == before
    apply_plan(database, make_plan(before, ["t" * 63], WatchOptions()))
    (index,) = read_schema(database).indexes
    assert index.name == "t" * 45 + "_by_shard_and_time"


@pytest.mark.parametrize("word", ["natural", "left", "interval", "exists", "values", "order"])
def test_a_key_whose_name_is_a_word_of_postgresql_is_hashed(
    create_postgres: CreatePostgres, word: str
) -> None:
    database = create_postgres(f'CREATE TABLE t ("{word}" text PRIMARY KEY, "{word}s" bigint)')
    options = WatchOptions(shards=4).for_dialect(PG)
    apply_plan(database, make_plan(read_schema(database), ["t"], options))
    with database.batch() as batch:
        batch.insert("t", (word, f"{word}s"), [("a", 1)])
    assert read(database, "t", (word, "shard_id"))[0][1] in range(4)


def test_a_column_that_another_is_computed_from_is_not_dropped() -> None:
    schema = parse_schema(
        """CREATE TABLE t (id bigint PRIMARY KEY, "Key" text, "'\\" text);
        ALTER TABLE t ADD COLUMN c text GENERATED ALWAYS AS (upper("Key") || '\\') STORED""",
        PG,
    )
    (table,) = schema.tables
    with pytest.raises(Exception, match="referenced by generated column `c`"):
        parse_schema([*render_schema(schema), 'ALTER TABLE t DROP COLUMN "Key"'], PG)
    assert table.columns[-1].generated == "upper(\"Key\") || '\\'"


STAMP = "c spanner.commit_timestamp"
SHARD = "s bigint GENERATED ALWAYS AS (mod(spanner.farm_fingerprint(a::text), 8)) VIRTUAL"
LINTED = {
    "on-update-missing": f"CREATE TABLE t (a bigint PRIMARY KEY, v bigint, {SHARD}, {STAMP});"
    "CREATE INDEX i ON t (s, c) WHERE s IS NOT NULL AND c IS NOT NULL",
    "history-without-deletion-policy": f'CREATE TABLE "H" (a bigint, {STAMP}, PRIMARY KEY (a, c))',
    "version-retention-too-short": "CREATE TABLE t (a bigint PRIMARY KEY)",
}


@pytest.mark.parametrize("rule", LINTED)
def test_the_fix_of_a_finding_runs_and_is_a_fix(create_postgres: CreatePostgres, rule: str) -> None:
    database = create_postgres(*LINTED[rule].split(";"))
    context = LintContext(longest_replay=7_200 if rule.startswith("version") else 0)
    (finding,) = lint_schema(read_schema(database), context)
    assert finding.rule == rule
    fix = finding.fix.replace(DATABASE, quote_name(database.database_id, PG))
    database.update_ddl(fix.split(";")).result(60)
    assert lint_schema(read_schema(database), context) == []


def test_a_finding_names_the_words_of_the_dialect() -> None:
    schema = parse_schema(
        f"""CREATE TABLE t (a bigint PRIMARY KEY, "B" text, {SHARD}, {STAMP});
        CREATE INDEX plain ON t (s, c);
        CREATE INDEX wide ON t (s, c, "B")
          WHERE s IS NOT NULL AND c IS NOT NULL AND "B" IS NOT NULL""",
        PG,
    )
    findings = lint_schema(schema, LintContext(written_by_others=False))
    assert {finding.rule: finding.fix for finding in findings} == {
        "index-not-null-filtered": "make it WHERE s IS NOT NULL AND c IS NOT NULL",
        "null-filtered-without-proof": 'use INCLUDE ("B") instead',
    }
    family = parse_schema(
        """CREATE TABLE p (a bigint, c spanner.commit_timestamp, PRIMARY KEY (a, c));
        CREATE TABLE k (a bigint, c timestamptz, d bigint, PRIMARY KEY (a, c, d))
          INTERLEAVE IN PARENT p""",
        PG,
    )
    assert {finding.fix for finding in lint_schema(family)} == {
        "use the same type for both",
        "ALTER TABLE p ADD TTL INTERVAL '30 days' ON c",
    }
    queries = ('SELECT a FROM t WHERE "c" > $1 OR a = 1', "SELECT c FROM t WHERE a = 'or'")
    (finding,) = lint_schema(
        parse_schema(f"CREATE TABLE t (a bigint PRIMARY KEY, {STAMP})", PG),
        LintContext(queries=queries),
    )
    assert (finding.rule, finding.place) == ("or-beside-commit-timestamp", queries[0])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("last_modified text", "not a plain timestamp with time zone column"),
        ("shard_id text", "not of type bigint"),
        ("last_modified timestamptz", "cannot turn into a SPANNER.COMMIT_TIMESTAMP column"),
    ],
)
def test_a_refusal_names_types_as_the_dialect_does(column: str, words: str) -> None:
    schema = parse_schema(f"CREATE TABLE t (a bigint PRIMARY KEY, {column})", PG)
    with pytest.raises(PlanError, match=words):
        make_plan(schema, ["t"], WatchOptions())


KEYS: dict[str, list[object]] = {
    "bigint": [1, -5, 2**62],
    "varchar(40)": ["a", "it's", "Ä€𝄞"],
    "text": ["", "b:1", "日本"],
    "date": ["2026-01-31", "1999-12-31", "0001-01-01"],
    "boolean": [True, False, True],
    "double precision": [1.5, 2.0, -0.25],
    "uuid": [str(uuid.UUID(int=number)) for number in (1, 2**127, 77)],
}
"""Types that are hashed, each with three values."""
OTHERS = ("bytea", "jsonb", "numeric", "text[]", "timestamptz", "real", "bigint[]")
GOOGLESQL_CODES = {TypeCode.PG_NUMERIC: TypeCode.NUMERIC, TypeCode.PG_JSONB: TypeCode.JSON}
NAMES = ("id", "Key", "select", "Order", "k9_x", "shard", "UPPER", "user", "a" * 60)
words = st.lists(st.sampled_from(NAMES), min_size=5, max_size=5, unique_by=str.casefold)


@dataclass(frozen=True)
class Made:
    """A generated table: its statements, its key, its hashable columns and their types."""

    statements: tuple[str, ...]
    table: str
    key: tuple[str, ...]
    types: dict[str, str]
    stamp: str | None


def write_name(draw: st.DrawFn, name: str) -> str:
    """A name in quotes, or without them in any case where that means the same."""
    quoted = '"' + name + '"'
    if name != name.lower() or quote_name(name, PG) == quoted:
        return quoted
    return draw(st.sampled_from((quoted, name, name.upper(), name.capitalize())))


@st.composite
def tables(draw: st.DrawFn) -> Made:
    names = draw(words)
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3))
    nullable = draw(st.sampled_from(sorted(KEYS)))
    types = dict(zip(names, [*keys, nullable], strict=False))
    lines = [f"{write_name(draw, name)} {type_}" for name, type_ in types.items()]
    lines.append(f'"Other" {draw(st.sampled_from(OTHERS))}')
    stamp = draw(st.sampled_from((None, "changed", "ChangedAt")))
    if stamp is not None:
        lines.append(f"{write_name(draw, stamp)} SPANNER.COMMIT_TIMESTAMP")
    key = tuple(names[: len(keys)])
    order = ", ".join(write_name(draw, name) for name in key)
    table = draw(st.sampled_from(("singers", "Singers", "table", "Order", "t" * 63)))
    owner = draw(st.sampled_from(("", "sales", "Sales", "select")))
    name = join_name(write_name(draw, owner) if owner else "", write_name(draw, table))
    statements = (
        *((f"CREATE SCHEMA {quote_name(owner, PG)}",) if owner else ()),
        f"CREATE TABLE {name} ({', '.join(lines)}, PRIMARY KEY ({order}))",
    )
    return Made(statements, join_name(owner, table), key, types, stamp)


@st.composite
def chosen_options(draw: st.DrawFn, made: Made) -> WatchOptions:
    strategies = [s for s in Strategy if s is not Strategy.MANUAL or made.stamp]
    strategy = draw(st.sampled_from(strategies))
    values: dict[str, object] = {"strategy": strategy, "shards": draw(st.integers(1, 30))}
    if made.stamp is not None and strategy is not Strategy.CHANGE_SET and draw(st.booleans()):
        values["timestamp_column"] = made.stamp.upper()
        if strategy is not Strategy.CHANGE_STREAM:
            values["take_over"] = (made.stamp.swapcase(),)
    elif strategy is Strategy.MANUAL:
        values["timestamp_column"] = made.stamp
    if strategy is not Strategy.CHANGE_SET and draw(st.booleans()):
        hashed = st.lists(st.sampled_from(sorted(made.types)), min_size=1, unique=True)
        values["shard_key"] = tuple(name.swapcase() for name in draw(hashed))
    if draw(st.booleans()):
        values["storing"] = ("OTHER",)
    values["stored"], values["modulo"] = draw(st.booleans()), draw(st.sampled_from(Modulo))
    return WatchOptions.model_validate(values)


def in_googlesql(schema: Schema) -> list[str]:
    """The statements of a schema's tables in GoogleSQL."""
    tables = []
    for table in schema.tables:
        columns = tuple(
            replace(c, type=replace(c.type, code=GOOGLESQL_CODES.get(c.type.code, c.type.code)))
            for c in table.columns
        )
        tables.append(replace(table, columns=columns))
    owners = schema.named_schemas
    return render_schema(Schema(Dialect.GOOGLESQL, tuple(tables), named_schemas=owners))


def make_rows(made: Made) -> list[list[object]]:
    """Three rows; the column outside the key is NULL in the last."""
    rows = [[KEYS[type_][number] for type_ in made.types.values()] for number in range(3)]
    rows[2][-1] = None
    keys = [tuple(map(str, row[: len(made.key)])) for row in rows]
    return [row for number, row in enumerate(rows) if keys.index(keys[number]) == number]


def test_any_schema_becomes_watchable_and_what_it_was_again(
    create_postgres: CreatePostgres, create_database: CreateDatabase
) -> None:
    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.data())
    def check(data: st.DataObject) -> None:
        made = data.draw(tables())
        options = data.draw(chosen_options(made))
        database = create_postgres(*made.statements)
        before = read_schema(database)
        assert parse_schema(list(made.statements), PG) == before
        apply_plan(database, make_plan(before, [made.table.swapcase()], options))
        after = read_schema(database)
        # A column that is taken over as it is leaves no mark in the schema: it is named again.
        assert not make_plan(after, [made.table], options).statements
        (status,) = list_statuses(after, [made.table])
        assert status.strategy == str(options.strategy) or made.stamp is not None
        if options.strategy in {Strategy.AUTOMATIC, Strategy.PROCESSED, Strategy.MANUAL}:
            twin = create_database(*in_googlesql(before))
            check_rows(database, twin, made, options)
        roll_back(database)
        assert read_schema(database) == before

    check()


def check_rows(database: Database, twin: Database, made: Made, options: WatchOptions) -> None:
    """Rows are in the index when they are written, in the shards that GoogleSQL gives them."""
    after = read_schema(database)
    table = after.table(made.table)
    assert table is not None
    index = find_trackings(after, table)[0].index
    shard, stamp = (part.column for part in index.parts)
    columns, rows = list(made.types), make_rows(made)
    written = [[*row, "spanner.commit_timestamp()"] for row in rows]
    by_hand = options.strategy is Strategy.MANUAL  # applications write the timestamp
    with database.batch() as batch:
        if by_hand:
            batch.insert(table.name, [*columns, stamp], written)
        else:
            batch.insert(table.name, columns, rows)
    (status,) = list_statuses(after, [table.name])
    assert count_index_rows(database, after, status) == len(rows)
    stamps = read(database, table.name, [stamp])
    assert stamps == [[batch.committed]] * len(rows)

    apply_plan(twin, make_plan(read_schema(twin), [table.name], options))
    names = options.for_dialect(Dialect.GOOGLESQL)
    with twin.batch() as other:
        other.insert(table.name, columns, rows)
    shards = read(database, table.name, [*made.key, shard])
    of_twin = read(twin, table.name, [*made.key, names.shard_column])
    assert sorted(map(str, shards)) == sorted(map(str, of_twin))
    assert status.shards is not None
    assert all(abs(row[-1]) < options.shards for row in shards)
    if not by_hand:
        check_updates(database, table.name, made, stamp)


def check_updates(database: Database, table: str, made: Made, stamp: str) -> None:
    """An UPDATE and a mutation set the commit timestamp of the rows that they write."""
    spoken = quote_name(table, PG)

    def update(transaction: Any) -> int:
        return int(transaction.execute_update(f'UPDATE {spoken} SET "Other" = NULL'))

    assert database.run_in_transaction(update) == len(read(database, table, [stamp]))
    before = {row[0] for row in read(database, table, [stamp])}
    assert len(before) == 1
    key = make_rows(made)[0][: len(made.key)]
    with database.batch() as batch:
        batch.update(table, [*made.key, "Other"], [[*key, None]])
    after = {row[0] for row in read(database, table, [stamp])}
    assert batch.committed in after
    assert after - before == {batch.committed}

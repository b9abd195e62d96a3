"""Each rule finds what it is there for, and says nothing about a schema that is right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fixtures.singers import SINGERS

from ddl.migration.plan import make_plan
from ddl.rules.evolve import apply_step, parse_schema
from ddl.tracking.lint import RULES, LintContext, lint_schema
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Schema
from spanner_schema.model.strategies import Strategy
from spanner_schema.syntax.parse import parse_statement

STAMP = "c TIMESTAMP OPTIONS (allow_commit_timestamp = true)"
SHARDED = "s INT64 AS (MOD(MOD(FARM_FINGERPRINT(CAST(a AS STRING)), {n}) + {n}, {n}))"
WATCHED = f"CREATE TABLE T (a INT64, p BOOL {{p}}, {SHARDED}, {STAMP}) PRIMARY KEY (a);"
INDEX = "CREATE NULL_FILTERED INDEX I ON T(s, c)"


def watched_table(n: int = 8, p: str = "", index: str = INDEX) -> str:
    return WATCHED.format(n=n, p=p) + index


BY_OTHERS, ALONE = LintContext(), LintContext(written_by_others=False)
CASES = [
    ("commit-timestamp-first", f"CREATE TABLE T (a INT64, {STAMP}) PRIMARY KEY (c, a)", ALONE),
    (
        "commit-timestamp-first",
        f"CREATE TABLE T (a INT64, {STAMP}) PRIMARY KEY (a); CREATE INDEX I ON T(c)",
        ALONE,
    ),
    ("monotonic-key-first", "CREATE TABLE T (a TIMESTAMP) PRIMARY KEY (a)", ALONE),
    (
        "monotonic-key-first",
        "CREATE SEQUENCE q OPTIONS (sequence_kind = 'plain');"
        "CREATE TABLE T (a INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE q))) PRIMARY KEY (a)",
        ALONE,
    ),
    (
        "interleaved-option-differs",
        f"CREATE TABLE P ({STAMP}, a INT64) PRIMARY KEY (a, c);"
        "CREATE TABLE C (a INT64, c TIMESTAMP, d INT64) PRIMARY KEY (a, c, d),"
        " INTERLEAVE IN PARENT P",
        ALONE,
    ),
    ("index-not-null-filtered", watched_table(index="CREATE INDEX I ON T(s, c)"), ALONE),
    (
        "null-filtered-without-proof",
        watched_table(index="CREATE NULL_FILTERED INDEX I ON T(s, c, p)"),
        ALONE,
    ),
    ("fewer-shards-than-nodes", watched_table(n=2), LintContext(nodes=3, written_by_others=False)),
    ("too-many-shards", watched_table(n=200), ALONE),
    (
        "shard-may-be-null",
        f"CREATE TABLE T (a INT64 NOT NULL, b STRING(MAX), {STAMP}, s INT64 AS"
        " (MOD(FARM_FINGERPRINT(COALESCE(CAST(a AS STRING), '') || b), 8))) PRIMARY KEY (a);"
        "CREATE NULL_FILTERED INDEX I ON T(s, c)",
        ALONE,
    ),
    (
        "skewed-shards",
        watched_table(n=4),
        LintContext(written_by_others=False, shard_rows={"T": {0: 900, 1: 30, 2: 30, 3: 40}}),
    ),
    (
        "processed-not-null",
        watched_table(p="NOT NULL")
        .replace("AS (MOD", "AS (CASE WHEN p THEN NULL ELSE MOD")
        .replace("+ 8, 8))", "+ 8, 8) END)"),
        ALONE,
    ),
    ("on-update-missing", watched_table(), BY_OTHERS),
    (
        "only-key-columns",
        "CREATE TABLE T (a INT64, s INT64 AS (MOD(MOD(FARM_FINGERPRINT(CAST(a AS STRING)), 8) + 8,"
        " 8)),"
        " c TIMESTAMP DEFAULT (PENDING_COMMIT_TIMESTAMP()) ON UPDATE (PENDING_COMMIT_TIMESTAMP())"
        " OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (a);"
        "CREATE NULL_FILTERED INDEX I ON T(s, c)",
        ALONE,
    ),
    (
        "history-without-deletion-policy",
        f"CREATE TABLE H (a INT64, {STAMP}) PRIMARY KEY (a, c)",
        ALONE,
    ),
    (
        "version-retention-too-short",
        "CREATE TABLE T (a INT64) PRIMARY KEY (a)",
        LintContext(longest_replay=7_200),
    ),
    (
        "or-beside-commit-timestamp",
        f"CREATE TABLE T (a INT64, {STAMP}) PRIMARY KEY (a)",
        LintContext(queries=("SELECT * FROM T WHERE c > @x OR a = 1",)),
    ),
]


@pytest.mark.parametrize(("rule", "schema", "context"), CASES)
def test_a_rule_finds_what_it_is_there_for(rule: str, schema: str, context: LintContext) -> None:
    findings = lint_schema(parse_schema(schema), context)
    assert rule in {finding.rule for finding in findings}
    for finding in findings:
        assert finding.place
        assert finding.why
        assert finding.fix


def watchable_schema(strategy: Strategy) -> Schema:
    schema = parse_schema(SINGERS)
    plan = make_plan(schema, ["Singers"], WatchOptions(strategy=strategy))
    for statement in plan.statements:
        schema = apply_step(schema, parse_statement(statement.sql))
    return schema


@pytest.mark.parametrize("strategy", [Strategy.AUTOMATIC, Strategy.PROCESSED])
def test_what_plan_makes_has_no_finding(strategy: Strategy) -> None:
    context = LintContext(
        nodes=4,
        queries=("SELECT * FROM Singers WHERE LastModified > @t AND ShardId = 1",),
        shard_rows={"Singers": dict.fromkeys(range(16), 100)},
        longest_replay=3_600,
    )
    assert lint_schema(watchable_schema(strategy), context) == []


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, _, _ in CASES} == set(RULES)


def test_the_page_names_every_rule() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/ddl.md").read_text()
    _, _, section = page.partition("## Rules of `ddl lint`\n")
    assert re.findall(r"`([a-z]+(?:-[a-z]+)+)`", section.partition("\n## ")[0]) == list(RULES)

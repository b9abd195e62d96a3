"""Rules for schemas: one function each; a finding says the place, the reason and the fix."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import (
    Column,
    Dialect,
    Index,
    KeyPart,
    RowDeletionPolicy,
    Schema,
    Table,
)
from spanner_schema.model.steps import AlterDatabase, SetDefault, SetOnUpdate, SetRowDeletionPolicy
from spanner_schema.syntax.references import find_nulls, find_referenced_columns
from spanner_schema.syntax.render import SPELLINGS, render_step
from spanner_schema.watched.shards import shard_values
from spanner_schema.watched.tracked import is_null_filtered

SHARDS_MAX = 100
RETENTION = re.compile(r"(?<!\d)(\d{1,9}+)\s*+([dhms])")
SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
RETENTION_DEFAULT_SECONDS = 3_600
NEXT_VALUE = re.compile(
    r"""NEXT_SEQUENCE_VALUE\(\s*SEQUENCE\s+([\w.`]+)|\bNEXTVAL\(\s*'([^']+)'""", re.I
)
"""The next value of a sequence, in both dialects."""
QUOTES = re.compile(r"""[`"]""")
STRINGS = {
    Dialect.GOOGLESQL: re.compile(r"""'[^']*'|"[^"]*\""""),
    Dialect.POSTGRESQL: re.compile(r"'[^']*'"),
}
"""Literals; what PostgreSQL puts in double quotes is a name."""
DIFFERENCES = {
    Dialect.GOOGLESQL: (
        "allow_commit_timestamp differs from that of the parent {0}",
        "set the option on both, or on neither",
    ),
    Dialect.POSTGRESQL: (
        "its type is not that of the parent {0}: one of them is SPANNER.COMMIT_TIMESTAMP",
        "use the same type for both",
    ),
}
"""Why and how to fix a key column that only a parent or only its child fills with timestamps."""
DATABASE = "database_id"
"""Stands for the name of the database in a statement of a fix."""
SKEW_MAX = 3.0
"""A shard with more than this many times its share of rows is skewed."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a rule finds: the place, why it matters, and how to fix it."""

    place: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class LintFinding:
    """What is wrong: the name of the rule, the place, why it matters, and how to fix it."""

    rule: str
    place: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class LintContext:
    """What the rules know besides the schema.

    ``longest_replay`` is in seconds. ``written_by_others`` is true if applications write the tables
    without setting the timestamp. ``shard_rows`` counts a sample of rows by table and shard.
    ``queries`` are the texts of poll queries.
    """

    nodes: int = 1
    longest_replay: float = 0.0
    written_by_others: bool = True
    shard_rows: dict[str, dict[int, int]] = field(default_factory=dict)
    queries: tuple[str, ...] = ()


Rule = Callable[[Schema, LintContext], Iterator[Problem]]


def lint_schema(schema: Schema, context: LintContext | None = None) -> list[LintFinding]:
    """All findings of all rules."""
    known = context or LintContext()
    return [
        LintFinding(name, problem.place, problem.why, problem.fix)
        for name, rule in RULES.items()
        for problem in rule(schema, known)
    ]


def check_commit_timestamp_is_not_first(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """A commit timestamp first in a key or index: every write goes to the same end."""
    for place, table, parts in list_keys(schema):
        column = table.column(parts[0].column) if parts else None
        if column is not None and column.allow_commit_timestamp:
            yield Problem(
                place,
                f"{column.name} grows with every commit: all writes go to one split",
                "put a shard (hash modulo N) before it: run spanner-watcher ddl plan",
            )


def check_key_is_not_monotonic(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """A key that only grows: an ordinary timestamp, or a sequence that is not bit-reversed."""
    for place, table, parts in list_keys(schema):
        column = table.column(parts[0].column) if parts else None
        if column is None or column.allow_commit_timestamp:
            continue
        if column.type.code is TypeCode.TIMESTAMP:
            yield Problem(
                place,
                f"{column.name} is a timestamp: new rows all go to one split",
                "put a shard (hash modulo N) before it, or use a UUID",
            )
        elif takes_plain_sequence(schema, column):
            yield Problem(
                place,
                f"{column.name} comes from a sequence that is not bit-reversed",
                f"use {SPELLINGS[schema.dialect].bit_reversed}, or a UUID",
            )


def takes_plain_sequence(schema: Schema, column: Column) -> bool:
    """True for a default from a sequence that is not bit-reversed."""
    match = NEXT_VALUE.search(column.default or "")
    if match is None:
        return False
    sequence = QUOTES.sub("", match.group(1) or match.group(2)).casefold()
    sequences = {v.name.casefold(): v.text for v in schema.verbatim if v.kind == "SEQUENCE"}
    if schema.options.get("default_sequence_kind"):
        return False  # the only kind there is
    return "bit_reversed" not in sequences.get(sequence, "bit_reversed").lower()


def list_keys(schema: Schema) -> Iterator[tuple[str, Table, tuple[KeyPart, ...]]]:
    """The place, table and key of every primary key and index."""
    for table in schema.tables:
        yield f"{table.name}, primary key", table, table.primary_key
    for index in schema.indexes:
        owner = schema.table(index.table)
        if owner is not None:
            yield f"{index.table}, index {index.name}", owner, index.parts


def check_interleaved_options(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """Spanner: allow_commit_timestamp must agree between a parent's key and its children's."""
    for table in schema.tables:
        parent = schema.table(table.interleave.parent) if table.interleave else None
        if parent is None:
            continue
        for part in parent.primary_key:
            own, above = table.column(part.column), parent.column(part.column)
            if own and above and own.allow_commit_timestamp != above.allow_commit_timestamp:
                why, fix = DIFFERENCES[schema.dialect]
                yield Problem(
                    f"{table.name}.{own.name}",
                    why.format(parent.name),
                    fix,
                )


def list_poll_indexes(schema: Schema) -> Iterator[tuple[Table, Index, Column, Column]]:
    """Every index on (generated shard, commit timestamp): its table, shard and timestamp."""
    for index in schema.indexes:
        table = schema.table(index.table)
        if table is None or len(index.parts) < 2:
            continue
        shard, stamp = (table.column(part.column) for part in index.parts[:2])
        if shard and stamp and shard.generated and stamp.allow_commit_timestamp:
            yield table, index, shard, stamp


def check_index_is_null_filtered(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """Clearing can remove rows from a null-filtered index only."""
    for table, index, _, _ in list_poll_indexes(schema):
        if not is_null_filtered(index):
            yield Problem(
                f"{table.name}, index {index.name}",
                "cleared rows stay in it: it grows with the table",
                "make it "
                + SPELLINGS[schema.dialect].write_null_filter(part.column for part in index.parts),
            )


def check_proof_is_possible(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """Polls prove NOT NULL for shard and timestamp; a third key part has no such proof."""
    for table, index, _, _ in list_poll_indexes(schema):
        if is_null_filtered(index) and len(index.parts) > 2:
            names = (part.column for part in index.parts[2:])
            others = SPELLINGS[schema.dialect].quote_columns(names)
            yield Problem(
                f"{table.name}, index {index.name}",
                f"polls do not prove that {others} is not NULL, so Spanner rejects FORCE_INDEX;"
                " rows where it is NULL are not in the index",
                f"use {SPELLINGS[schema.dialect].stored_columns} ({others}) instead",
            )


def list_shard_counts(schema: Schema) -> Iterator[tuple[str, int]]:
    """The computed shards of polled tables, and how many values each has."""
    for table, _, shard, _ in list_poll_indexes(schema):
        values = shard_values(shard.generated or "")
        if values is not None:
            yield f"{table.name}.{shard.name}", len(values)


def check_shards_are_enough(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """Fewer shards than nodes leave nodes idle."""
    for place, count in list_shard_counts(schema):
        if count < context.nodes:
            yield Problem(
                place,
                f"{count} shards for {context.nodes} nodes: some nodes never write the index",
                "run spanner-watcher ddl advise, and use more shards",
            )


def check_shards_are_few(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """Very many shards make each poll expensive."""
    for place, count in list_shard_counts(schema):
        if count > SHARDS_MAX:
            yield Problem(
                place,
                f"{count} shards: every poll seeks once in each",
                f"use at most {SHARDS_MAX}",
            )


def check_shards_are_even(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """Most rows are in few shards of a sample of the database."""
    for table, _, shard, _ in list_poll_indexes(schema):
        counts = context.shard_rows.get(table.name, {})
        values = shard_values(shard.generated or "")
        total = sum(counts.values())
        if not values or total < 10 * len(values):
            continue
        number, rows = max(counts.items(), key=lambda item: item[1])
        if rows * len(values) > SKEW_MAX * total:
            yield Problem(
                f"{table.name}.{shard.name}",
                f"shard {number} has {rows} of {total} sampled rows, {len(values)} shards in all",
                "hash the primary key or more columns with --shard-key",
            )


def check_processed_may_be_null(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """If Processed is NOT NULL, inserts that do not set it fail."""
    for table, _, shard, _ in list_poll_indexes(schema):
        if not (shard.generated or "").lstrip().upper().startswith("CASE"):
            continue
        for name in find_referenced_columns(shard.generated or "", table, schema.dialect):
            column = table.column(name)
            if column and column.type.code is TypeCode.BOOL and column.not_null:
                yield Problem(
                    f"{table.name}.{column.name}",
                    "applications that do not set the column cannot insert rows",
                    "drop NOT NULL: NULL counts as not processed",
                )


def check_shard_is_not_null(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """A row whose shard is NULL is in no index, so that no poll finds it."""
    for table, _, shard, _ in list_poll_indexes(schema):
        for name in find_nulls(shard.generated or "", table, schema.dialect):
            yield Problem(
                f"{table.name}.{shard.name}",
                f"no poll sees a row in which {name} is NULL, because its shard is, too",
                f"put {name} into COALESCE in the expression of the shard, or make it NOT NULL",
            )


def check_on_update_is_set(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """Without ON UPDATE a poll misses changes that do not set the timestamp."""
    for table, _, _, stamp in list_poll_indexes(schema):
        if context.written_by_others and stamp.on_update is None:
            pending = SPELLINGS[schema.dialect].commit_timestamp
            default = SetDefault(table.name, stamp.name, pending)
            on_update = SetOnUpdate(table.name, stamp.name, pending)
            yield Problem(
                f"{table.name}.{stamp.name}",
                "no poll sees an UPDATE that does not set it; with the fix each one overwrites its"
                " value",
                f"{render_step(default, schema.dialect)}; {render_step(on_update, schema.dialect)}",
            )


def check_columns_are_not_all_key(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """ON UPDATE is for writes of columns outside the key: a row without any is written once."""
    for table, _, _, stamp in list_poll_indexes(schema):
        key = {part.column.casefold() for part in table.primary_key}
        own = [
            column
            for column in table.columns
            if column.name.casefold() not in key
            and column.generated is None
            and not column.allow_commit_timestamp
        ]
        if stamp.on_update is not None and not own:
            yield Problem(
                table.name,
                f"all its columns are key: an INSERT sets {stamp.name}, but an insert-or-update of"
                " a row that exists does not, so that no poll sees it",
                "watch it by a change stream, or write a column that is outside the key",
            )


def check_history_is_deleted(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """A table with a commit timestamp last in its key grows with every change."""
    for table in schema.tables:
        last = table.column(table.primary_key[-1].column) if len(table.primary_key) > 1 else None
        if last and last.allow_commit_timestamp and table.row_deletion_policy is None:
            yield Problem(
                table.name,
                "it grows with every change, and nothing deletes old rows",
                render_step(
                    SetRowDeletionPolicy(table.name, RowDeletionPolicy(last.name, 30)),
                    schema.dialect,
                ),
            )


def check_version_retention(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """A replay cannot read at a timestamp older than version garbage collection."""
    text = schema.options.get("version_retention_period", "")
    match = RETENTION.search(text)
    retention_seconds = (
        int(match.group(1)) * SECONDS[match.group(2)] if match else RETENTION_DEFAULT_SECONDS
    )
    if retention_seconds < context.longest_replay:
        yield Problem(
            "the database",
            f"versions are kept for {retention_seconds} s, but the longest replay needs"
            f" {context.longest_replay:.0f} s",
            render_step(
                AlterDatabase(DATABASE, (("version_retention_period", "'7d'"),)), schema.dialect
            ),
        )


def check_queries_without_or(schema: Schema, context: LintContext) -> Iterator[Problem]:
    """With an OR beside the commit timestamp Spanner does not use its optimization for it."""
    stamps = {
        column.name.casefold()
        for table in schema.tables
        for column in table.columns
        if column.allow_commit_timestamp
    }
    for query in context.queries:
        without_strings = STRINGS[schema.dialect].sub("''", query)
        words = {word.casefold() for word in re.findall(r"\w+", without_strings)}
        if "or" in words and words & stamps:
            yield Problem(
                query,
                "Spanner scans the whole table: with an OR it does not read the newest rows alone",
                "use only AND, or write two queries",
            )


RULES: Mapping[str, Rule] = {
    "commit-timestamp-first": check_commit_timestamp_is_not_first,
    "monotonic-key-first": check_key_is_not_monotonic,
    "interleaved-option-differs": check_interleaved_options,
    "index-not-null-filtered": check_index_is_null_filtered,
    "null-filtered-without-proof": check_proof_is_possible,
    "fewer-shards-than-nodes": check_shards_are_enough,
    "too-many-shards": check_shards_are_few,
    "skewed-shards": check_shards_are_even,
    "shard-may-be-null": check_shard_is_not_null,
    "processed-not-null": check_processed_may_be_null,
    "on-update-missing": check_on_update_is_set,
    "only-key-columns": check_columns_are_not_all_key,
    "history-without-deletion-policy": check_history_is_deleted,
    "version-retention-too-short": check_version_retention,
    "or-beside-commit-timestamp": check_queries_without_or,
}
"""The rules by their names, in the order of their findings."""

"""Plans: complete, done once, right in their shards, and refused before anything is changed."""

from __future__ import annotations

import collections
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pytest
from fixtures.server import CreateDatabase
from fixtures.singers import SINGERS, address_of
from google.cloud.spanner_v1 import COMMIT_TIMESTAMP, KeySet
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.plan import Plan, make_plan
from ddl.migration.record import record_plan
from ddl.migration.updates import SchemaUpdate
from ddl.rules.evolve import parse_schema
from spanner_schema.model.errors import ApplyError, DdlError
from spanner_schema.model.names import NAME_LENGTH_MAX
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect
from spanner_schema.watched.records import read_ownership
from spanner_schema.watched.shards import shard_values
from watcher import Change, Watcher

STRATEGIES = ("automatic", "processed")


def options(**values: object) -> WatchOptions:
    return WatchOptions.model_validate({"shards": 8} | values)


def statements(plan: Plan) -> list[str]:
    return [statement.sql for statement in plan.statements]


def test_the_plan_of_a_bare_table_touches_no_row_before_the_index() -> None:
    plan = make_plan(parse_schema(SINGERS), ["Singers"], options(shards=19))
    hashed = "FARM_FINGERPRINT(COALESCE(CAST(SingerId AS STRING), ''))"
    assert statements(plan) == [
        "ALTER TABLE Singers ADD COLUMN LastModified TIMESTAMP"
        " OPTIONS (allow_commit_timestamp = true)",
        "ALTER TABLE Singers ALTER COLUMN LastModified SET DEFAULT (PENDING_COMMIT_TIMESTAMP())",
        "ALTER TABLE Singers ALTER COLUMN LastModified SET ON UPDATE (PENDING_COMMIT_TIMESTAMP())",
        f"ALTER TABLE Singers ADD COLUMN ShardId INT64 AS (MOD(MOD({hashed}, 19) + 19, 19))",
        "CREATE NULL_FILTERED INDEX SingersByShardAndTime ON Singers(ShardId, LastModified)",
    ]
    assert [s.long_running for s in plan.statements] == [False, False, False, False, True]
    assert all(statement.reason for statement in plan.statements)


def test_processed_takes_the_shard_away_from_processed_rows() -> None:
    plan = make_plan(parse_schema(SINGERS), ["Singers"], options(strategy="processed"))
    assert "ALTER TABLE Singers ADD COLUMN Processed BOOL" in statements(plan)
    assert any("AS (CASE WHEN Processed THEN NULL ELSE MOD(" in s for s in statements(plan))


@pytest.mark.both_dialects
@pytest.mark.ddl(SINGERS)
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("stored", [False, True])
def test_an_applied_plan_is_complete(
    database: Database, dialect: Dialect, strategy: str, stored: bool
) -> None:
    names = WatchOptions().for_dialect(dialect)
    with database.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(k, f"n{k}") for k in range(50)])
    watch_options = options(strategy=strategy, stored=stored)
    seen: list[SchemaUpdate] = []
    plan = make_plan(read_schema(database), ["Singers"], watch_options)
    apply_plan(database, plan, seen.append)
    assert seen[-1].done == len(plan.statements)
    assert make_plan(read_schema(database), ["Singers"], watch_options).empty
    with database.snapshot() as snapshot:
        columns = ("SingerId", names.timestamp_column, names.shard_column)
        rows = list(snapshot.read("Singers", columns, KeySet(all_=True)))
    assert {row[0] for row in rows} == set(range(50))
    assert all(row[1] is None and 0 <= row[2] < 8 for row in rows)


PLAIN_STAMP = SINGERS.replace("Picture BYTES(MAX)", "Picture BYTES(MAX), LastModified TIMESTAMP")


@pytest.mark.ddl(PLAIN_STAMP)
def test_a_timestamp_column_is_converted_unless_a_value_lies_in_the_future(
    database: Database,
) -> None:
    with database.batch() as batch:
        rows = [(1, "2020-01-01T00:00:00Z"), (2, "2999-01-01T00:00:00Z")]
        batch.insert("Singers", ("SingerId", "LastModified"), rows)
    taking = options(take_over=["lastmodified"])
    plan = make_plan(read_schema(database), ["Singers"], taking)
    (taken,) = plan.taken_over
    assert (taken.table, taken.name) == ("Singers", "LastModified")
    assert "overwrite" in taken.effect
    assert "NULL" in taken.effect
    assert "allow_commit_timestamp = true" in statements(plan)[0]
    with pytest.raises(ApplyError, match="statement 1 of 5 failed"):
        apply_plan(database, plan)
    with database.batch() as batch:
        batch.update("Singers", ("SingerId", "LastModified"), [(2, "2021-01-01T00:00:00Z")])
    apply_plan(database, make_plan(read_schema(database), ["Singers"], taking))
    assert make_plan(read_schema(database), ["Singers"], taking).empty
    assert make_plan(read_schema(database), ["Singers"], options()).empty
    with database.snapshot() as snapshot:
        rows = snapshot.execute_sql("SELECT COUNT(*) FROM Singers WHERE LastModified IS NOT NULL")
        assert next(iter(rows))[0] == 2


LONG = "T" * 128
NAMES = [
    ("CREATE SCHEMA s; CREATE TABLE s.Order (`Group` INT64) PRIMARY KEY (`Group`)", "s.Order"),
    (f"CREATE TABLE {LONG} (a INT64) PRIMARY KEY (a)", LONG),
    ("CREATE TABLE `Select` (a INT64, `by` INT64) PRIMARY KEY (a, `by`)", "Select"),
    (
        "CREATE TABLE T (a INT64) PRIMARY KEY (a);"
        "CREATE TABLE tbyshardandtime (a INT64) PRIMARY KEY (a)",
        "t",
    ),
]


@pytest.mark.both_dialects
@pytest.mark.parametrize(("schema", "table"), NAMES)
def test_names_of_every_kind_are_planned_and_applied(
    create_database: Callable[..., Database], dialect: Dialect, schema: str, table: str
) -> None:
    if dialect is Dialect.POSTGRESQL:
        schema, table = schema.replace(LONG, LONG[:63]), table.replace(LONG, LONG[:63])
    database = create_database(*schema.replace("s.Order", "s.`Order`").split(";"))
    before = read_schema(database)
    apply_plan(database, make_plan(before, [table], options()))
    after = read_schema(database)
    assert make_plan(after, [table], options()).empty
    (index,) = after.indexes
    assert len(index.name.rsplit(".", maxsplit=1)[-1]) <= NAME_LENGTH_MAX[dialect]
    assert after.table(index.name) is None


@pytest.mark.ddl(SINGERS)
@pytest.mark.both_dialects
def test_a_plan_for_another_schema_is_refused_and_changes_nothing(database: Database) -> None:
    plan = make_plan(read_schema(database), ["Singers"], options())
    database.update_ddl(statements(plan)[:1]).result(60)
    before = read_schema(database)
    with pytest.raises(ApplyError, match="plan again"):
        apply_plan(database, plan)
    assert read_schema(database) == before


@pytest.mark.ddl(SINGERS)
@pytest.mark.both_dialects
def test_a_plan_that_stopped_half_way_is_finished_by_the_next(database: Database) -> None:
    whole = make_plan(read_schema(database), ["Singers"], options())
    record_plan(database, whole, read_schema(database))
    for count in range(1, len(whole.statements)):
        database.update_ddl([statements(whole)[count - 1]]).result(60)
        schema = read_schema(database)
        rest = make_plan(schema, ["Singers"], options(), read_ownership(database, schema))
        assert statements(rest) == statements(whole)[count:]


def create_table(columns: str, key: str) -> str:
    return f"CREATE TABLE T ({columns}) PRIMARY KEY ({key})"


REFUSED = [
    ("CREATE TABLE U (a INT64) PRIMARY KEY (a)", {}, "table T does not exist"),
    (
        create_table("c TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp = true)", "c"),
        {},
        "no primary key column",
    ),
    (create_table("a INT64, j JSON", "a"), {"shard_key": ["j"]}, "cannot be hashed"),
    (create_table("a INT64", "a"), {"shard_key": ["b"]}, "no column b"),
    (create_table("a INT64, LastModified STRING(9)", "a"), {}, "not a plain TIMESTAMP"),
    (create_table("a INT64, LastModified TIMESTAMP", "a, LastModified"), {}, "primary key"),
    (create_table("a INT64, ShardId STRING(9)", "a"), {}, "not of type INT64"),
    (create_table("a INT64, Processed INT64", "a"), {"strategy": "processed"}, "not a plain BOOL"),
    (create_table("a INT64, LastModified TIMESTAMP", "a"), {}, "--take-over LastModified"),
    (
        create_table("a INT64, LastModified TIMESTAMP OPTIONS (allow_commit_timestamp=true)", "a"),
        {"strategy": "processed"},
        "is not ours.*overwrite",
    ),
    (
        create_table("a INT64, U TIMESTAMP NOT NULL", "a"),
        {"timestamp_column": "u", "take_over": ["U"]},
        "NOT NULL",
    ),
    (create_table("a INT64, Processed BOOL", "a"), {"strategy": "processed"}, "set it to TRUE"),
    (create_table("a INT64, ShardId INT64", "a"), {}, "not a computed shard"),
    (create_table("a INT64, ShardId INT64 AS (a)", "a"), {}, "not a computed shard"),
    (
        create_table("a INT64, ShardId INT64 AS (MOD(FARM_FINGERPRINT('x'), 4))", "a"),
        {"shards": 5},
        "shards 4, but --shards 5 was asked for",
    ),
    (create_table("a INT64, b TIMESTAMP", "a"), {"take_over": ["b"]}, "--take-over b"),
    (
        create_table("a INT64", "a")
        + "; CREATE TABLE CHANGE_SETS (ChangeSetId STRING(36), CommitTimestamp TIMESTAMP"
        " OPTIONS (allow_commit_timestamp=true), Who STRING(9)) PRIMARY KEY (ChangeSetId)",
        {"strategy": "change-set"},
        "delete its rows",
    ),
    (create_table("a INT64", "a"), {"storing": ["b"]}, "no column b"),
    (
        create_table("a INT64", "a") + "; CREATE TABLE I (a INT64) PRIMARY KEY (a)",
        {"index": "I"},
        "is taken",
    ),
]


@pytest.mark.parametrize(("schema", "values", "words"), REFUSED)
def test_what_cannot_be_watched_is_refused(
    schema: str, values: dict[str, object], words: str
) -> None:
    with pytest.raises(DdlError, match=words):
        make_plan(parse_schema(schema), ["T"], options(**values))


def test_generated_names_are_free() -> None:
    schema = parse_schema(
        SINGERS + "; CREATE TABLE singersbyshardandtime (a INT64) PRIMARY KEY (a)"
    )
    plan = make_plan(schema, ["Singers"], options())
    assert "INDEX SingersByShardAndTime2 ON" in statements(plan)[-1]


KEYS: dict[str, tuple[str, str, Callable[[int], tuple[object, ...]]]] = {
    "sequential": ("k INT64 NOT NULL", "k", lambda n: (n,)),
    "uuid text": (
        "k STRING(36) NOT NULL",
        "k",
        lambda n: (str(uuid.uuid5(uuid.NAMESPACE_OID, str(n))),),
    ),
    "skewed text": ("k STRING(MAX)", "k", lambda n: ("customer-" * (n % 3) + f"{n:x}",)),
    "composite": (
        "a STRING(9), b STRING(9), c INT64",
        "a, b, c",
        lambda n: ("x" * (n % 5), "x" * (n % 7), n // 35),
    ),
    "date": ("k DATE NOT NULL, n INT64", "k, n", lambda n: (f"2024-01-{n % 28 + 1:02}", n)),
    "bytes and bool": ("k BYTES(9), b BOOL", "k, b", lambda n: (f"{n:08x}", n % 2 == 0)),
    "numeric": ("k NUMERIC", "k", lambda n: (f"{n}.5",)),
    "float": ("k FLOAT64", "k", lambda n: (n / 8,)),
    "timestamp": ("k TIMESTAMP", "k", lambda n: (f"2024-01-01T00:{n // 60:02}:{n % 60:02}Z",)),
}
NOT_IN_POSTGRESQL = {"bytes and bool", "numeric", "timestamp"}
"""Keys without an immutable text there, and numeric, which is no key there."""
KEYS_BY_DIALECT = [
    (kind, dialect)
    for dialect in Dialect
    for kind in KEYS
    if dialect is Dialect.GOOGLESQL or kind not in NOT_IN_POSTGRESQL
]
ROWS = 2_000
CHI_SQUARE_15_DEGREES = 44.3
"""The value that a right distribution over 16 shards passes once in 10,000 times."""


def chi_square(sizes: Iterable[int], expected: float) -> float:
    return sum((size - expected) ** 2 / expected for size in sizes)


@pytest.mark.parametrize(("kind", "dialect"), KEYS_BY_DIALECT, indirect=["dialect"])
def test_rows_spread_evenly_over_exactly_the_shards(
    create_database: CreateDatabase, dialect: Dialect, kind: str
) -> None:
    columns, key, make = KEYS[kind]
    database = create_database(create_table(columns, key))
    apply_plan(database, make_plan(read_schema(database), ["T"], options(shards=16)))
    names = tuple(part.strip() for part in key.split(","))
    with database.batch() as batch:
        batch.insert("T", names, [make(number) for number in range(ROWS)])
    with database.snapshot() as snapshot:
        columns_read = (WatchOptions().for_dialect(dialect).shard_column,)
        shards = [row[0] for row in snapshot.read("T", columns_read, KeySet(all_=True))]
    sizes = collections.Counter(shards)
    assert set(sizes) == set(range(16))
    assert chi_square(sizes.values(), ROWS / 16) < CHI_SQUARE_15_DEGREES


def test_a_null_key_has_a_shard_too(create_database: CreateDatabase) -> None:
    database = create_database(create_table("a INT64, b STRING(9)", "a, b"))
    apply_plan(database, make_plan(read_schema(database), ["T"], options()))
    with database.batch() as batch:
        batch.insert("T", ("a", "b"), [(None, None), (None, "x"), (1, None)])
    with database.snapshot() as snapshot:
        shards = [row[0] for row in snapshot.execute_sql("SELECT ShardId FROM T")]
    assert len(shards) == 3
    assert all(shard is not None for shard in shards)


@pytest.mark.both_dialects
def test_composite_keys_do_not_run_into_each_other(
    create_database: CreateDatabase, dialect: Dialect
) -> None:
    database = create_database(create_table("a STRING(9), b STRING(9)", "a, b"))
    plan = make_plan(read_schema(database), ["T"], options(shards=1_000))
    apply_plan(database, plan)
    with database.batch() as batch:
        batch.insert("T", ("a", "b"), [("ab", "c"), ("a", "bc"), ("abc", ""), ("", "abc")])
    with database.snapshot() as snapshot:
        columns = (WatchOptions().for_dialect(dialect).shard_column,)
        shards = {row[0] for row in snapshot.read("T", columns, KeySet(all_=True))}
    assert len(shards) == 4


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("MOD(MOD(FARM_FINGERPRINT(k), 8) + 8, 8)", range(8)),
        ("MOD(FARM_FINGERPRINT(k), 19)", range(-18, 19)),
        ("ABS(MOD(FARM_FINGERPRINT(k), 19))", range(19)),
        ("CASE WHEN Processed THEN NULL ELSE MOD(FARM_FINGERPRINT(k), 19) END", range(-18, 19)),
        ("IF(Done, NULL, MOD(FARM_FINGERPRINT(CONCAT(k, ', 3)')), 19))", range(-18, 19)),
        ("1 + ABS(MOD(FARM_FINGERPRINT(k), 4))", range(1, 5)),
        ("MOD(MOD(k, 8) + 8, 8) + 1", range(1, 9)),
        ("COALESCE(ABS(MOD(k, 4)), 9)", range(10)),
        (
            "mod(mod(spanner.farm_fingerprint(k::text), '8'::bigint) + '8'::bigint, '8'::bigint)"
            " * '-2'::bigint",
            None,
        ),
        ("(- mod(k, (4)::bigint)) - '10'::bigint", range(-13, -6)),
    ],
)
def test_the_values_of_a_shard_are_read_from_its_expression(
    expression: str, values: Iterable[int] | None
) -> None:
    assert shard_values(expression) == (None if values is None else tuple(values))
    for unknown in (
        "k",
        "DIV(MOD(k, 100), 10)",
        "MOD(k, n)",
        "MOD(k, 4) << 2",
        "MOD(k, 4) || 'a'",
        f"1{' + 1' * 99}",
    ):
        assert shard_values(unknown) is None


@dataclass(frozen=True)
class Written:
    """An expression of two columns, and what it is of their values."""

    text: str
    evaluate: Callable[[int, int], int | None]


def write_modulo(one: Written, number: int) -> Written:
    def evaluate(a: int, b: int) -> int | None:
        value = one.evaluate(a, b)
        return None if value is None else abs(value) % number * (1 if value >= 0 else -1)

    return Written(f"MOD({one.text}, {number})", evaluate)


def write_sum(sign: str, one: Written, other: Written) -> Written:
    def evaluate(a: int, b: int) -> int | None:
        left, right = one.evaluate(a, b), other.evaluate(a, b)
        if left is None or right is None:
            return None
        return {"+": left + right, "-": left - right, "*": left * right}[sign]

    return Written(f"({one.text}) {sign} ({other.text})", evaluate)


def write_choice(one: Written, other: Written) -> Written:
    text = f"CASE WHEN a > b THEN {one.text} WHEN a = b THEN NULL ELSE {other.text} END"
    return Written(
        text,
        lambda a, b: one.evaluate(a, b) if a > b else None if a == b else other.evaluate(a, b),
    )


def write_absolute(one: Written) -> Written:
    def evaluate(a: int, b: int) -> int | None:
        value = one.evaluate(a, b)
        return None if value is None else abs(value)

    return Written(f"ABS({one.text})", evaluate)


WRITTEN = st.recursive(
    st.sampled_from([Written("a", lambda a, _: a), Written("b", lambda _, b: b)])
    | st.integers(0, 20).map(lambda n: Written(str(n), lambda *_: n)),
    lambda parts: (
        st.builds(write_modulo, parts, st.integers(1, 9))
        | st.builds(write_sum, st.sampled_from("+-*"), parts, parts)
        | st.builds(write_choice, parts, parts)
        | st.builds(write_absolute, parts)
    ),
    max_leaves=6,
)


@given(WRITTEN, st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=1))
def test_no_value_of_a_shard_is_missing_whatever_its_expression(
    written: Written, rows: list[tuple[int, int]]
) -> None:
    values = shard_values(written.text)
    if values is not None:
        shards = {written.evaluate(a, b) for a, b in rows} - {None}
        assert shards <= set(values)


@pytest.mark.ddl(
    "CREATE TABLE T (Id INT64 NOT NULL, Changed TIMESTAMP OPTIONS (allow_commit_timestamp=true),"
    " Shard INT64 AS (1 + ABS(MOD(FARM_FINGERPRINT(CAST(Id AS STRING)), 4))) STORED)"
    " PRIMARY KEY (Id)",
    "CREATE NULL_FILTERED INDEX ByShard ON T(Shard, Changed)",
)
def test_a_shard_that_an_application_numbers_from_one_is_polled_whole(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("T", ("Id", "Changed"), [(n, COMMIT_TIMESTAMP) for n in range(40)])
    seen: list[Change] = []
    watcher = Watcher(database=str(address_of(database)), tables=["T"], start="earliest")
    watcher.on_change(seen.append)
    watcher.run_once()
    assert {change.shard_id for change in seen} == {1, 2, 3, 4}
    assert len(seen) == 40


def test_shard_counts_have_bounds() -> None:
    for count in (0, -1, 1_001):
        with pytest.raises(ValueError, match="shards"):
            options(shards=count)

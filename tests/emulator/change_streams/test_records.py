"""What data change records say: capture types, filters, net effects, exclusion, tags."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from fixtures.broken_streams import resume_query
from google.api_core.exceptions import FailedPrecondition, GoogleAPICallError
from google.cloud.spanner import KeySet
from google.cloud.spanner_v1 import RequestOptions, param_types
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction
from stream_reader import now, parse_fields, read_all, records

USERS = "CREATE TABLE Users (Id INT64, Name STRING(MAX), Age INT64) PRIMARY KEY (Id)"
ALL = "CREATE CHANGE STREAM S FOR ALL"
Change = tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]
COLUMNS = ["Id", "Name", "Age"]
CHANGED = ("UPDATE", {"Id": "1"})


def changes(data: list[list[Any]]) -> list[Change]:
    return [
        (r[7], parse_fields(keys), parse_fields(new), parse_fields(old))
        for r in data
        for keys, new, old in r[6]
    ]


def data_since(database: Database, start: datetime, stream: str = "S") -> list[list[Any]]:
    return read_all(database, stream, start, now()).data


def changes_of(database: Database, write: Callable[[Any], object]) -> list[Change]:
    """What one commit of mutations gives."""
    with database.batch() as batch:
        write(batch)
    return changes(read_all(database, "S", batch.committed, batch.committed).data)


def key(number: int) -> KeySet:
    return KeySet(keys=[[number]])


def first_row(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("Users", COLUMNS, [(1, "one", 11)])


@pytest.mark.parametrize(
    ("capture", "new", "old", "deleted"),
    [
        ("OLD_AND_NEW_VALUES", {"Name": "uno"}, {"Name": "one"}, {"Name": "uno", "Age": "11"}),
        ("NEW_VALUES", {"Name": "uno"}, {}, {}),
        ("NEW_ROW", {"Name": "uno", "Age": "11"}, {}, {}),
        (
            "NEW_ROW_AND_OLD_VALUES",
            {"Name": "uno", "Age": "11"},
            {"Name": "one"},
            {"Name": "uno", "Age": "11"},
        ),
    ],
)
def test_the_capture_type_chooses_the_values(
    create_database: Callable[..., Database],
    capture: str,
    new: dict[str, Any],
    old: dict[str, Any],
    deleted: dict[str, Any],
) -> None:
    database = create_database(USERS, f"{ALL} OPTIONS (value_capture_type = '{capture}')")
    inserted = changes_of(database, lambda b: b.insert("Users", COLUMNS, [(1, "one", 11)]))
    assert inserted == [("INSERT", {"Id": "1"}, {"Name": "one", "Age": "11"}, {})]
    updated = changes_of(database, lambda b: b.update("Users", ["Id", "Name"], [(1, "uno")]))
    assert updated == [("UPDATE", {"Id": "1"}, new, old)]
    gone = changes_of(database, lambda b: b.delete("Users", key(1)))
    assert gone == [("DELETE", {"Id": "1"}, {}, deleted)]


@pytest.mark.ddl(USERS, ALL)
def test_a_value_written_again_is_a_change(database: Database) -> None:
    first_row(database)
    changes_read = changes_of(database, lambda b: b.update("Users", ["Id", "Name"], [(1, "one")]))
    assert changes_read == [(*CHANGED, {"Name": "one"}, {"Name": "one"})]


def insert_and_delete(batch: Any) -> None:
    batch.insert("Users", COLUMNS, [(2, "two", 2)])
    batch.delete("Users", key(2))


def insert_and_update(batch: Any) -> None:
    batch.insert("Users", COLUMNS, [(2, "two", 2)])
    batch.update("Users", ["Id", "Name"], [(2, "deux")])


def insert_delete_insert(batch: Any) -> None:
    insert_and_delete(batch)
    batch.insert("Users", COLUMNS, [(2, "again", 3)])


def update_and_delete(batch: Any) -> None:
    batch.update("Users", ["Id", "Name"], [(1, "uno")])
    batch.delete("Users", key(1))


def update_twice(batch: Any) -> None:
    batch.update("Users", ["Id", "Name"], [(1, "uno")])
    batch.update("Users", ["Id", "Age"], [(1, 12)])


def replace(batch: Any) -> None:
    batch.replace("Users", ["Id", "Name"], [(1, "uno")])


@pytest.mark.ddl(USERS, ALL)
@pytest.mark.parametrize(
    ("write", "expected"),
    [
        (insert_and_delete, []),
        (insert_and_update, [("INSERT", {"Id": "2"}, {"Name": "deux", "Age": "2"}, {})]),
        (insert_delete_insert, [("INSERT", {"Id": "2"}, {"Name": "again", "Age": "3"}, {})]),
        (update_and_delete, [("DELETE", {"Id": "1"}, {}, {"Name": "one", "Age": "11"})]),
        (
            update_twice,
            [(*CHANGED, {"Name": "uno", "Age": "12"}, {"Name": "one", "Age": "11"})],
        ),
        (replace, [(*CHANGED, {"Name": "uno", "Age": None}, {"Name": "one", "Age": "11"})]),
    ],
)
def test_a_transaction_leaves_the_net_effect_on_each_row(
    database: Database, write: Callable[[Any], None], expected: list[Change]
) -> None:
    first_row(database)
    assert changes_of(database, write) == expected


@pytest.mark.ddl(
    "CREATE TABLE Logs (Id INT64, Note STRING(MAX), `At` TIMESTAMP OPTIONS "
    "(allow_commit_timestamp=true), Data BYTES(MAX), Price NUMERIC, Rate FLOAT64, Ok BOOL, "
    "Tags ARRAY<STRING(MAX)>, Doc JSON, Double INT64 AS (Id * 2) STORED) PRIMARY KEY (Id)",
    ALL,
)
def test_dml_in_a_transaction_has_commit_timestamps_and_every_type(database: Database) -> None:
    def work(transaction: Any) -> None:
        transaction.execute_update(
            "INSERT INTO Logs (Id, Note, `At`, Data, Price, Rate, Ok, Tags, Doc) VALUES (1, 'a', "
            "PENDING_COMMIT_TIMESTAMP(), b'xyz', NUMERIC '1.50', 0.5, TRUE, ['p', 'q'], "
            "@doc)",
            params={"doc": '{"k": 1}'},
            param_types={"doc": param_types.JSON},
        )
        transaction.execute_update("UPDATE Logs SET Note = 'b' WHERE Id = 1")

    start = now()
    database.run_in_transaction(work)
    (record,) = data_since(database, start)
    ((kind, keys, new, old),) = changes([record])
    assert (kind, keys, old) == ("INSERT", {"Id": "1"}, {})
    stamp = record[0].isoformat().replace("+00:00", "Z")
    assert new.pop("At").rstrip("0Z") == stamp.rstrip("0Z")
    assert new == {
        "Note": "b",
        "Data": "eHl6",
        "Price": "1.5",
        "Rate": 0.5,
        "Ok": True,
        "Tags": ["p", "q"],
        "Doc": '{"k":1}',
    }
    types = {
        name: (parse_fields(type_)["code"], in_key, place)
        for name, type_, in_key, place in record[5]
    }
    assert types["Id"] == ("INT64", True, 1)
    assert types["Tags"] == ("ARRAY", False, 8)
    assert "Double" not in types


@pytest.mark.ddl(
    "CREATE TABLE Numbers (Id INT64, N INT64, Ns ARRAY<INT64>) PRIMARY KEY (Id)",
    ALL,
)
def test_the_greatest_number_is_a_number(database: Database) -> None:
    greatest = 2**63 - 1
    with database.batch() as batch:
        batch.insert("Numbers", ("Id", "N", "Ns"), [(greatest, greatest, [greatest])])
    ((_, keys, new, _),) = changes(read_all(database, "S", batch.committed, batch.committed).data)
    assert keys == {"Id": str(greatest)}
    assert new == {"N": str(greatest), "Ns": [str(greatest)]}


@pytest.mark.ddl(USERS, ALL)
def test_records_outlive_the_column_that_they_speak_of(database: Database) -> None:
    with database.batch() as batch:
        batch.insert("Users", COLUMNS, [(1, "one", 11)])
    before = data_since(database, batch.committed)
    database.update_ddl(
        ["ALTER TABLE Users DROP COLUMN Age", "ALTER TABLE Users ADD COLUMN Age STRING(9)"]
    ).result(60)
    assert data_since(database, batch.committed) == before
    with database.batch() as later:
        later.update("Users", COLUMNS, [(1, "uno", "old")])
    ((kind, _, new, old),) = changes(data_since(database, later.committed))
    assert (kind, new, old) == (
        "UPDATE",
        {"Name": "uno", "Age": "old"},
        {"Name": "one", "Age": None},
    )


@pytest.mark.ddl(USERS, ALL)
def test_a_statement_that_fails_leaves_no_record(database: Database) -> None:
    first_row(database)
    start = now()

    def work(transaction: Any) -> None:
        transaction.execute_update("INSERT INTO Users (Id) VALUES (8)")
        with pytest.raises(GoogleAPICallError):
            transaction.execute_update("INSERT INTO Users (Id) VALUES (7), (DIV(1, 0))")

    database.run_in_transaction(work)
    changes_read = changes(data_since(database, start))
    assert [(kind, keys) for kind, keys, _, _ in changes_read] == [("INSERT", {"Id": "8"})]


@pytest.mark.ddl(
    USERS,
    "CREATE TABLE Pets (Id INT64, Pet INT64) PRIMARY KEY (Id, Pet), "
    "INTERLEAVE IN PARENT Users ON DELETE CASCADE",
    "CREATE CHANGE STREAM S FOR Users(Age), Pets()",
    "CREATE CHANGE STREAM Keys FOR Users()",
)
def test_only_what_is_watched_is_recorded_also_of_a_cascade(database: Database) -> None:
    start = now()
    first_row(database)
    with database.batch() as batch:
        batch.insert("Pets", ["Id", "Pet"], [(1, 5)])
    assert changes_of(database, lambda b: b.update("Users", ["Id", "Name"], [(1, "x")])) == []
    changes_read = changes_of(database, lambda b: b.update("Users", COLUMNS, [(1, "y", 12)]))
    assert changes_read == [(*CHANGED, {"Age": "12"}, {"Age": "11"})]
    gone = changes_of(database, lambda b: b.delete("Users", key(1)))
    assert sorted(gone, key=str) == sorted(
        [
            ("DELETE", {"Id": "1", "Pet": "5"}, {}, {}),
            ("DELETE", {"Id": "1"}, {}, {"Age": "12"}),
        ],
        key=str,
    )
    keys = changes(data_since(database, start, "Keys"))
    assert keys == [("INSERT", {"Id": "1"}, {}, {}), ("DELETE", {"Id": "1"}, {}, {})]


@pytest.mark.parametrize("left_out", ["insert", "update", "delete"])
def test_filters_leave_out_a_kind_of_change(
    create_database: Callable[..., Database], left_out: str
) -> None:
    database = create_database(USERS, f"{ALL} OPTIONS (exclude_{left_out} = true)")
    start = now()
    first_row(database)
    with database.batch() as batch:
        batch.update("Users", ["Id", "Age"], [(1, 12)])
    with database.batch() as batch:
        batch.delete("Users", key(1))
    kinds = {kind.casefold() for kind, *_ in changes(data_since(database, start))}
    assert kinds == {"insert", "update", "delete"} - {left_out}


@pytest.mark.ddl(
    USERS,
    "CREATE CHANGE STREAM Tolerant FOR ALL OPTIONS (allow_txn_exclusion = true)",
    "CREATE CHANGE STREAM Strict FOR ALL",
)
def test_excluded_transactions_are_left_out_only_where_the_stream_allows_it(
    database: Database,
) -> None:
    start = now()
    with database.batch(exclude_txn_from_change_streams=True) as batch:
        batch.insert("Users", COLUMNS, [(1, "a", 1)])

    def work(transaction: Any) -> None:
        transaction.execute_update("INSERT INTO Users (Id) VALUES (2)")

    database.run_in_transaction(work, exclude_txn_from_change_streams=True)
    database.run_in_transaction(work_on_three)
    database.execute_partitioned_dml(
        "UPDATE Users SET Age = 5 WHERE Id = 1", exclude_txn_from_change_streams=True
    )
    with database.mutation_groups() as groups:
        groups.group().insert("Users", ["Id"], [(4,)])
        list(groups.batch_write(exclude_txn_from_change_streams=True))

    def record_kinds(stream: str) -> set[tuple[str, str]]:
        return {
            (kind, keys["Id"]) for kind, keys, *_ in changes(data_since(database, start, stream))
        }

    assert record_kinds("Tolerant") == {("INSERT", "3")}
    assert record_kinds("Strict") == {("INSERT", str(n)) for n in (1, 2, 3, 4)} | {("UPDATE", "1")}


def work_on_three(transaction: Any) -> None:
    transaction.execute_update("INSERT INTO Users (Id) VALUES (3)")


@pytest.mark.ddl(USERS, ALL)
def test_a_record_carries_the_tag_and_the_numbers_of_its_transaction(database: Database) -> None:
    start = now()
    with database.batch(request_options=RequestOptions(transaction_tag="app=x")) as batch:
        batch.insert("Users", COLUMNS, [(n, "n", n) for n in range(30)])
    data = data_since(database, start)
    assert {r[11] for r in data} == {"app=x"}
    assert {r[12] for r in data} == {False}
    assert len({r[2] for r in data}) == 1
    assert sorted(r[1] for r in data) == [f"{n:08}" for n in range(len(data))]
    assert sum(len(r[6]) for r in data) == 30


@pytest.mark.ddl(USERS, ALL)
def test_a_stream_that_breaks_goes_on_after_the_last_record(
    database: Database, faults: Callable[..., None]
) -> None:
    start = now()
    for number in range(40):
        with database.batch() as batch:
            batch.insert("Users", ["Id"], [(number,)])
    faults(unavailable_after_rows=3)
    changes_read = changes(data_since(database, start))
    assert sorted(int(keys["Id"]) for _, keys, _, _ in changes_read) == list(range(40))


@pytest.mark.ddl(USERS, ALL)
def test_the_metadata_of_a_query_do_not_come_again_where_it_continues(
    database: Database, faults: Callable[..., None]
) -> None:
    start = now()
    for number in range(40):
        with database.batch() as batch:
            batch.insert("Users", ["Id"], [(number,)])
    _, _, children = next(iter(records(database, "S", start, now())))
    token = children[0][2][0][0]
    faults(unavailable_after_rows=1, unavailable_streams_max=1)
    sql = (
        f"SELECT ChangeRecord FROM READ_S(TIMESTAMP '{start.isoformat()}',"
        f" TIMESTAMP '{now().isoformat()}', '{token}', 10000, NULL)"
    )
    begun, resumed = resume_query(database, sql)
    assert [field.name for field in begun[0].metadata.row_type.fields] == ["ChangeRecord"]
    assert resumed
    assert not any("metadata" in message for message in resumed)


@pytest.mark.ddl(USERS, ALL)
def test_information_schema_knows_the_streams(database: Database) -> None:
    database.update_ddl(
        ["CREATE CHANGE STREAM Few FOR Users(Age) OPTIONS (retention_period = '36h')"]
    ).result(30)

    def rows(sql: str) -> list[list[Any]]:
        with database.snapshot() as snapshot:
            return list(snapshot.execute_sql(sql))

    head = "FROM INFORMATION_SCHEMA.CHANGE_STREAM"
    assert rows(f"SELECT CHANGE_STREAM_NAME, `ALL` {head}S ORDER BY 1") == [
        ["Few", False],
        ["S", True],
    ]
    assert rows(f"SELECT TABLE_NAME, ALL_COLUMNS {head}_TABLES") == [["Users", False]]
    assert rows(f"SELECT COLUMN_NAME {head}_COLUMNS") == [["Age"]]
    assert rows(f"SELECT OPTION_NAME, OPTION_VALUE {head}_OPTIONS") == [["retention_period", "36h"]]


@pytest.mark.ddl(
    "CREATE TABLE T (Id INT64, A INT64, G INT64 AS (A + 1) STORED) PRIMARY KEY (Id)", USERS
)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE CHANGE STREAM X FOR T(Id)",
        "CREATE CHANGE STREAM X FOR T(G)",
        "CREATE CHANGE STREAM X FOR T(A, A)",
        "CREATE CHANGE STREAM X FOR T, T",
        "CREATE CHANGE STREAM X FOR T OPTIONS (retention_period = '1h')",
        "CREATE CHANGE STREAM X FOR T OPTIONS (retention_period = '31d')",
        "CREATE CHANGE STREAM X FOR T OPTIONS (value_capture_type = 'EVERYTHING')",
        "CREATE CHANGE STREAM X FOR T OPTIONS (colour = 'red')",
    ],
)
def test_wrong_streams_are_refused(database: Database, statement: str) -> None:
    with pytest.raises(FailedPrecondition):
        database.update_ddl([statement]).result(30)


@pytest.mark.ddl(USERS)
def test_the_numbers_of_streams_are_limited(database: Database) -> None:
    database.update_ddl([f"CREATE CHANGE STREAM S{n} FOR Users" for n in range(3)]).result(30)
    with pytest.raises(FailedPrecondition, match="more than 3"):
        database.update_ddl(["CREATE CHANGE STREAM X FOR ALL"]).result(30)
    database.update_ddl([f"CREATE CHANGE STREAM E{n}" for n in range(7)]).result(30)
    with pytest.raises(FailedPrecondition, match="limit 10"):
        database.update_ddl(["CREATE CHANGE STREAM X"]).result(30)


@pytest.mark.ddl(USERS, "CREATE CHANGE STREAM S FOR Users")
def test_a_table_that_a_stream_names_stays_and_a_dropped_stream_is_gone(database: Database) -> None:
    with pytest.raises(FailedPrecondition):
        database.update_ddl(["DROP TABLE Users"]).result(30)
    start = now()
    first_row(database)
    database.update_ddl(["DROP CHANGE STREAM S", "CREATE CHANGE STREAM S FOR Users"]).result(30)
    with pytest.raises(GoogleAPICallError, match="too far in the past"):
        data_since(database, start - timedelta(seconds=1))
    again = now()
    assert data_since(database, again) == []


@pytest.mark.ddl(
    "CREATE TABLE F (Id FLOAT64, D FLOAT64, R FLOAT32, Ds ARRAY<FLOAT64>) PRIMARY KEY (Id)", ALL
)
def test_a_zero_keeps_its_sign(database: Database) -> None:
    names, cells = ("Id", "D", "R", "Ds"), (-0.0, -0.0, -0.0, [-0.0])
    with database.batch() as batch:
        batch.insert("F", names, [cells])
    ((_, keys, new, _),) = changes(read_all(database, "S", batch.committed, batch.committed).data)
    values = keys | new
    assert [str(values[name]) for name in names] == [str(each) for each in cells]


@pytest.mark.ddl("CREATE TABLE F (Id FLOAT64, D FLOAT64) PRIMARY KEY (Id)", ALL)
def test_zeros_of_either_sign_are_one_row(database: Database) -> None:
    def work(transaction: Transaction) -> None:
        transaction.insert("F", ("Id", "D"), [(-0.0, 1.0)])
        transaction.update("F", ("Id", "D"), [(0.0, 2.0)])

    start = now()
    database.run_in_transaction(work)
    assert changes(data_since(database, start)) == [("INSERT", {"Id": 0.0}, {"D": 2.0}, {})]

"""Placements: instance partitions, DDL with Spanner's refusals, the keys of rows, the catalog."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fixtures.placements import DDL, add_partitions
from fixtures.server import connect, spawn
from google.api_core import exceptions
from google.cloud.spanner_admin_instance_v1.types import InstancePartition
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance

EU = DDL[0]
T = DDL[2]


def refuse(database: Database, statement: str) -> str:
    """The code and the text with which a statement is refused."""
    with pytest.raises(exceptions.GoogleAPICallError) as refused:
        database.update_ddl([statement]).result(30)
    return f"{type(refused.value).__name__}: {refused.value.message}"


def rows(database: Database, sql: str, **at: Any) -> list[Any]:
    with database.snapshot(**at) as snapshot:
        return list(snapshot.execute_sql(sql))


OF_A_STATEMENT = {
    "CREATE PLACEMENT x": "InvalidArgument: CREATE PLACEMENT statements require option"
    " `instance_partition` to be set",
    "CREATE PLACEMENT x OPTIONS (instance_partition = NULL)": "InvalidArgument: Placements must"
    " have a non-NULL instance_partition.",
    "CREATE PLACEMENT x OPTIONS (instance_partition = '')": "InvalidArgument: Empty string is an"
    " invalid value for instance_partition. If you'd like to clear a previously set value, use"
    " NULL.",
    "CREATE PLACEMENT x OPTIONS (instance_partition = 5)": "InvalidArgument: Unexpected value for"
    " option: instance_partition. Supported option values are strings and NULL.",
    "CREATE PLACEMENT x OPTIONS (instance_partition = 'asia', size = 'big')": "InvalidArgument:"
    " Option: size is unknown.",
    "CREATE PLACEMENT x OPTIONS (instance_partition = 'asia', instance_partition = 'asia')": (
        "InvalidArgument: Duplicate option: instance_partition"
    ),
    "CREATE PLACEMENT x OPTIONS (instance_partition = 'mars')": "NotFound: Instance partition not"
    " found: mars. Create it in the instance before the placement.",
    "CREATE PLACEMENT s.x OPTIONS (instance_partition = 'asia')": "InvalidArgument: Placement name"
    " not valid: s.x.",
    "CREATE PLACEMENT `default` OPTIONS (instance_partition = 'asia')": "FailedPrecondition:"
    " Duplicate name in schema: default.",
    "CREATE PLACEMENT EU OPTIONS (instance_partition = 'asia')": "FailedPrecondition: Duplicate"
    " name in schema: EU.",
    "CREATE PLACEMENT T OPTIONS (instance_partition = 'asia')": "FailedPrecondition: Duplicate name"
    " in schema: T.",
    "ALTER PLACEMENT eu SET OPTIONS (default_leader = 'x')": "FailedPrecondition: Placement eu"
    " cannot be altered: create a new placement, update the placement key of its rows with"
    " partitioned DML, and drop the old one.",
    "ALTER PLACEMENT pl SET OPTIONS (default_leader = 'x')": "NotFound: Placement not found: pl",
    "DROP PLACEMENT pl": "NotFound: Placement not found: pl",
    "ALTER TABLE T DROP COLUMN Place": "FailedPrecondition: Cannot drop placement key column"
    " T.Place.",
    "ALTER TABLE T ALTER COLUMN Place STRING(MAX) NOT NULL": "FailedPrecondition: Cannot drop"
    " placement key column T.Place.",
    "ALTER TABLE T ALTER COLUMN Place DROP PLACEMENT KEY": "FailedPrecondition: Cannot add or drop"
    " the placement key of a table that exists: create the table again.",
    "ALTER TABLE U ADD COLUMN P STRING(MAX) NOT NULL DEFAULT ('default') PLACEMENT KEY": ""
    "FailedPrecondition: Cannot add placement key column U.P to a table that exists.",
    "CREATE TABLE N (Id INT64, P INT64 NOT NULL PLACEMENT KEY) PRIMARY KEY (Id)": "InvalidArgument:"
    " Placement key column N.P must be of type STRING, but it is INT64.",
    "CREATE TABLE N (Id INT64, P STRING(MAX) PLACEMENT KEY) PRIMARY KEY (Id)": "InvalidArgument:"
    " Placement key column N.P must be NOT NULL.",
    "CREATE TABLE N (Id INT64, P STRING(MAX) NOT NULL PLACEMENT KEY,"
    " Q STRING(MAX) NOT NULL PLACEMENT KEY) PRIMARY KEY (Id)": "InvalidArgument: Table N has more"
    " than one placement key column.",
    "CREATE TABLE N (Id INT64, P STRING(MAX) NOT NULL PLACEMENT KEY) PRIMARY KEY (Id),"
    " INTERLEAVE IN PARENT U": "InvalidArgument: Table N is interleaved in U and cannot have a"
    " placement key: its rows are in the placement of their parents.",
    "ALTER DATABASE d SET OPTIONS (per_placement_routing_metadata = true)": "FailedPrecondition:"
    " The option per_placement_routing_metadata cannot be set because the database has placements.",
}


@pytest.mark.parametrize("statement", OF_A_STATEMENT)
def test_a_statement_is_refused_in_words(
    create_placed_database: Callable[..., Database], statement: str
) -> None:
    database = create_placed_database(*DDL)
    assert refuse(database, statement).startswith(OF_A_STATEMENT[statement])


def test_statements_that_may_find_nothing_to_do(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL)
    database.update_ddl(
        [
            "CREATE PLACEMENT IF NOT EXISTS eu OPTIONS (instance_partition = 'asia')",
            "DROP PLACEMENT IF EXISTS pl",
            "ALTER PLACEMENT IF EXISTS pl SET OPTIONS (default_leader = 'x')",
            "ALTER TABLE T ADD COLUMN More INT64",
            "ALTER TABLE T DROP COLUMN More",
        ]
    ).result(30)
    database.reload()
    assert EU in database.ddl_statements


def test_there_are_fifty_placements_at_most(
    create_placed_database: Callable[..., Database],
) -> None:
    create = "CREATE PLACEMENT p{} OPTIONS (instance_partition = 'asia')"
    database = create_placed_database(*(create.format(number) for number in range(50)))
    assert "limit is 50" in refuse(database, create.format(50))


def test_a_row_names_a_placement(create_placed_database: Callable[..., Database]) -> None:
    database = create_placed_database(*DDL)
    with database.batch() as batch:
        batch.insert("T", ["Id", "Place"], [(1, "eu"), (2, "us"), (3, "default")])
    for place in ("mars", "", "EU"):
        with (
            pytest.raises(exceptions.InvalidArgument, match=f"Unknown placement: {place}"),
            database.batch() as batch,
        ):
            batch.insert("T", ["Id", "Place"], [(4, place)])
    with pytest.raises(exceptions.InvalidArgument, match="Unknown placement: mars"):
        database.run_in_transaction(
            lambda transaction: transaction.execute_update(
                "UPDATE T SET Place = 'mars' WHERE Id = 1"
            )
        )
    database.update_ddl(["CREATE PLACEMENT mars OPTIONS (instance_partition = 'asia')"]).result(30)
    assert database.execute_partitioned_dml("UPDATE T SET Place = 'mars' WHERE Id < 3") == 2
    assert rows(database, "SELECT Id, Place FROM T ORDER BY Id") == [
        [1, "mars"],
        [2, "mars"],
        [3, "default"],
    ]


def test_what_has_rows_is_not_dropped(create_placed_database: Callable[..., Database]) -> None:
    database = create_placed_database(*DDL[:3])
    with database.batch() as batch:
        batch.insert("T", ["Id", "Place"], [(1, "eu")])
    database.update_ddl(["DROP PLACEMENT us"]).result(30)
    assert refuse(database, "DROP PLACEMENT eu").startswith(
        "FailedPrecondition: Placement eu can't be dropped because it is in use by placement table"
        " T."
    )
    assert refuse(database, "DROP TABLE T").startswith(
        "FailedPrecondition: Cannot drop placement table T because it has rows. Delete all its rows"
        " first."
    )
    with database.batch() as batch:
        batch.delete("T", KeySet(all_=True))
    database.update_ddl(["DROP PLACEMENT eu", "DROP TABLE T"]).result(30)
    database.reload()
    assert list(database.ddl_statements) == []


def test_the_catalog_tells_placements_and_their_keys(
    create_placed_database: Callable[..., Database],
) -> None:
    database = create_placed_database(*DDL)
    before = datetime.now(UTC)
    leader = "CREATE PLACEMENT x OPTIONS (instance_partition = \"asia\", default_leader = 'r')"
    database.update_ddl([leader]).result(30)
    placements = "SELECT * FROM INFORMATION_SCHEMA.PLACEMENTS ORDER BY 1"
    old = [["default", True], ["eu", False], ["us", False]]
    assert rows(database, placements) == [*old, ["x", False]]
    assert rows(database, placements, read_timestamp=before) == old
    assert rows(
        database,
        "SELECT * FROM INFORMATION_SCHEMA.PLACEMENT_OPTIONS WHERE PLACEMENT_NAME = 'x' ORDER BY 2",
    ) == [
        ["x", "default_leader", "STRING(MAX)", "r"],
        ["x", "instance_partition", "STRING(MAX)", "asia"],
    ]
    assert rows(
        database,
        "SELECT c.TABLE_NAME, u.COLUMN_NAME FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS AS c"
        " JOIN INFORMATION_SCHEMA.KEY_COLUMN_USAGE AS u USING (CONSTRAINT_NAME)"
        " WHERE CONSTRAINT_TYPE = 'PLACEMENT KEY'",
    ) == [["T", "Place"]]


def test_the_schema_is_told_and_made_again(create_placed_database: Callable[..., Database]) -> None:
    stream = "CREATE CHANGE STREAM S FOR ALL OPTIONS (per_placement_tvf = true)"
    database = create_placed_database(*DDL, stream)
    database.reload()
    told = list(database.ddl_statements)
    assert told[:2] == list(DDL[:2])
    assert "  Place STRING(MAX) NOT NULL PLACEMENT KEY,\n" in told[2]
    again = create_placed_database(*told)
    again.reload()
    assert list(again.ddl_statements) == told


def test_placements_outlive_the_process(tmp_path: Path) -> None:
    with spawn(tmp_path) as server:
        instance = connect(server.address)
        add_partitions(instance)
        database = instance.database("kept", ddl_statements=DDL)
        database.create().result(30)
        with database.batch() as batch:
            batch.insert("T", ["Id", "Place"], [(1, "eu")])
        server.kill()
    with spawn(tmp_path) as server:
        instance = connect(server.address)
        database = instance.database("kept")
        api = instance._client.instance_admin_api
        names = [
            p.name.rpartition("/")[2] for p in api.list_instance_partitions(parent=instance.name)
        ]
        assert names == ["america", "asia", "europe"]
        assert "in use by placement table T" in refuse(database, "DROP PLACEMENT eu")
        with (
            pytest.raises(exceptions.InvalidArgument, match="Unknown placement: mars"),
            database.batch() as batch,
        ):
            batch.update("T", ["Id", "Place"], [(1, "mars")])


def test_an_instance_partition_is_made_changed_and_removed(
    placed_instance: Instance, create_placed_database: Callable[..., Database]
) -> None:
    api = placed_instance._client.instance_admin_api
    name = f"{placed_instance.name}/instancePartitions/p-1"

    def create(identifier: str, **values: Any) -> InstancePartition:
        done = api.create_instance_partition(
            parent=placed_instance.name,
            instance_partition_id=identifier,
            instance_partition=InstancePartition(config="c", **values),
        )
        made: InstancePartition = done.result(10)
        return made

    made = create("p-1", processing_units=2000)
    assert (made.name, made.state.name, made.processing_units) == (name, "READY", 2000)
    with pytest.raises(exceptions.AlreadyExists, match="already exists"):
        create("p-1")
    for identifier in ("default", "X", "a"):
        with pytest.raises(exceptions.InvalidArgument, match="instance partition id"):
            create(identifier)
    with pytest.raises(exceptions.InvalidArgument, match="at least one node"):
        create("p-2", processing_units=100)
    api.update_instance_partition(
        instance_partition=InstancePartition(name=name, node_count=3),
        field_mask={"paths": ["node_count"]},
    ).result(10)
    database = create_placed_database("CREATE PLACEMENT p OPTIONS (instance_partition = 'p-1')")
    shown = api.get_instance_partition(name=name)
    assert (shown.node_count, list(shown.referencing_databases)) == (3, [database.name])
    with pytest.raises(exceptions.FailedPrecondition, match="in use by placements"):
        api.delete_instance_partition(name=name)
    database.update_ddl(["DROP PLACEMENT p"]).result(30)
    api.delete_instance_partition(name=name)
    with pytest.raises(exceptions.NotFound, match="Instance partition not found"):
        api.get_instance_partition(name=name)
    done = list(api.list_instance_partition_operations(parent=placed_instance.name))
    assert all(operation.done for operation in done)
    assert any(operation.name.startswith(name) for operation in done)

"""Options of requests: priorities and directed reads."""

from __future__ import annotations

from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import DirectedReadOptions, KeySet, RequestOptions
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.transaction import Transaction
from talk import commit, insert

pytestmark = pytest.mark.ddl("CREATE TABLE T (K INT64) PRIMARY KEY (K)")

ALL = KeySet(all_=True)


def replicas(count: int) -> dict[str, Any]:
    """Options that include so many replicas."""
    selections = [{"location": f"us-east{number}"} for number in range(count)]
    return {"include_replicas": {"replica_selections": selections}}


def test_reads_take_priorities_and_directed_reads(database: Database) -> None:
    commit(database, insert("T", "K", [1]))
    options = RequestOptions(priority=RequestOptions.Priority.PRIORITY_LOW)
    excluded = {"exclude_replicas": {"replica_selections": [{"type_": "READ_ONLY"}]}}
    for directed in (replicas(10), excluded, DirectedReadOptions()):
        directions = {"directed_read_options": directed, "request_options": options}
        with database.snapshot(multi_use=True) as snapshot:
            assert list(snapshot.execute_sql("SELECT K FROM T", **directions)) == [[1]]
            assert list(snapshot.read("T", ["K"], ALL, **directions)) == [[1]]


def test_too_many_replicas_are_refused(database: Database) -> None:
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql("SELECT 1", directed_read_options=replicas(11))
        with pytest.raises(exceptions.InvalidArgument, match="replica_selections"):
            list(result)


@pytest.mark.parametrize("kind", ["query", "read"])
def test_directed_reads_need_a_read_only_transaction(database: Database, kind: str) -> None:
    def work(transaction: Transaction) -> None:
        directed = replicas(1)
        if kind == "query":
            list(transaction.execute_sql("SELECT 1", directed_read_options=directed))
        else:
            list(transaction.read("T", ["K"], ALL, directed_read_options=directed))

    message = "Directed reads can only be performed in a read-only transaction."
    with pytest.raises(exceptions.InvalidArgument, match=message):
        database.run_in_transaction(work)


@pytest.mark.filterwarnings("ignore:Unrecognized Priority")
def test_a_priority_that_there_is_not_is_refused(database: Database) -> None:
    options = RequestOptions(priority=9)
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql("SELECT 1", request_options=options)
        with pytest.raises(exceptions.InvalidArgument, match="Invalid priority 9"):
            list(result)


@pytest.mark.parametrize("selection", [{"type_": 9}, {}])
def test_a_replica_selection_must_make_sense(database: Database, selection: dict[str, Any]) -> None:
    directed = DirectedReadOptions()
    added = DirectedReadOptions.pb(directed).include_replicas.replica_selections.add()
    added.type_ = selection.get("type_", 0)
    with database.snapshot() as snapshot, pytest.raises(exceptions.InvalidArgument, match="eplica"):
        list(snapshot.execute_sql("SELECT 1", directed_read_options=directed))


@pytest.mark.parametrize("version", ["1", "9", "latest", "default", ""])
def test_versions_of_the_optimizer_are_taken(database: Database, version: str) -> None:
    with database.snapshot() as snapshot:
        options = {"optimizer_version": version}
        assert list(snapshot.execute_sql("SELECT 1", query_options=options)) == [[1]]


@pytest.mark.parametrize("version", ["0", "10", "-1", "newest", "99999999999999999999"])
def test_versions_that_there_are_not_are_refused(database: Database, version: str) -> None:
    options = {"optimizer_version": version}
    with database.snapshot() as snapshot:
        result = snapshot.execute_sql("SELECT 1", query_options=options)
        with pytest.raises(exceptions.InvalidArgument, match=f"version: {version} is not"):
            list(result)


@pytest.mark.parametrize("version", ["10", "0", "newest"])
def test_a_hint_or_an_option_names_a_version_that_there_is(
    database: Database, version: str
) -> None:
    refused = f"Query optimizer version: {version} is not supported"
    with (
        database.snapshot() as snapshot,
        pytest.raises(exceptions.InvalidArgument, match=refused),
    ):
        list(snapshot.execute_sql(f"@{{OPTIMIZER_VERSION={version}}} SELECT 1"))
    value = version if version.isdigit() else f"'{version}'"
    change = f"ALTER DATABASE `{database.database_id}` SET OPTIONS (optimizer_version = {value})"
    with pytest.raises(exceptions.InvalidArgument, match=refused):
        database.update_ddl([change]).result(10)


@pytest.mark.parametrize("package", ["latest", "LATEST", ""])
def test_the_latest_package_of_statistics_may_be_asked_for(
    database: Database, package: str
) -> None:
    options = {"optimizer_statistics_package": package}
    with database.snapshot() as snapshot:
        assert list(snapshot.execute_sql("SELECT 1", query_options=options)) == [[1]]


def test_a_package_of_statistics_that_there_is_not_is_refused_as_a_hint(database: Database) -> None:
    """As an option of a request it is not looked for, as the integration tests of the Java client
    have it."""
    with database.snapshot() as snapshot:
        options = {"optimizer_statistics_package": "auto_x"}
        assert list(snapshot.execute_sql("SELECT 1", query_options=options)) == [[1]]
    refused = "Requested optimizer statistics package not found: auto_x"
    with (
        database.snapshot() as snapshot,
        pytest.raises(exceptions.InvalidArgument, match=refused),
    ):
        list(snapshot.execute_sql("@{OPTIMIZER_STATISTICS_PACKAGE=auto_x} SELECT 1"))

"""BatchWrite: groups of mutations, each committed or refused on its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from google.api_core import exceptions
from google.cloud.spanner_v1 import BatchWriteRequest
from google.cloud.spanner_v1.database import Database
from google.rpc import code_pb2
from talk import Change, Mutations, change, delete, insert, read

pytestmark = pytest.mark.ddl(
    "CREATE TABLE Users (Id INT64 NOT NULL, Name STRING(MAX), Age INT64) PRIMARY KEY (Id)",
    "CREATE TABLE Posts (Id INT64 NOT NULL, N INT64) PRIMARY KEY (Id, N),"
    " INTERLEAVE IN PARENT Users",
)


def batch_write(database: Database, *groups: Sequence[Change]) -> dict[int, int]:
    """The code of the status of each group; an applied one has a commit timestamp, others none."""
    requested = []
    for group in groups:
        mutations = Mutations()
        for each in group:
            each(mutations)
        requested.append(BatchWriteRequest.MutationGroup(mutations=mutations.messages))
    api = database.spanner_api
    session = api.create_session(database=database.name).name
    request = BatchWriteRequest(session=session, mutation_groups=requested)
    codes: dict[int, int] = {}
    for answer in api.batch_write(request=request):
        assert ("commit_timestamp" in answer) == (answer.status.code == code_pb2.OK)
        for index in answer.indexes:
            assert index not in codes
            codes[index] = answer.status.code
    return codes


def test_a_group_is_applied(database: Database) -> None:
    assert batch_write(database, [insert("Users", "Id Name Age", (1, "a", 27))]) == {0: 0}
    assert read(database, "Users", "Id Name Age") == [[1, "a", 27]]


def test_a_group_that_is_sent_again_is_applied_again(database: Database) -> None:
    """There is no protection against a replay: an insert fails, an upsert takes place."""
    again = [insert("Users", "Id", (1,))]
    assert batch_write(database, again) == {0: code_pb2.OK}
    assert batch_write(database, again) == {0: code_pb2.ALREADY_EXISTS}
    upsert = [change("insert_or_update", "Users", "Id Age", (1, 1))]
    assert batch_write(database, upsert, upsert) == {0: code_pb2.OK, 1: code_pb2.OK}


def test_the_mutations_of_a_group_follow_each_other(database: Database) -> None:
    group = [insert("Users", "Id Name", (1, "a")), delete("Users", [1])]
    assert batch_write(database, group) == {0: code_pb2.OK}
    assert read(database, "Users", "Id") == []


def test_a_group_is_applied_whole_or_not_and_the_others_go_on(database: Database) -> None:
    assert batch_write(
        database,
        [insert("Users", "Id Name", (3, "a")), insert("Users", "Id Name", (3, "twice"))],
        [insert("Users", "Id", (1,)), insert("Users", "Id", (2,))],
        [insert("Users", "Id", (4,)), insert("Missing", "Id", (4,))],
        [insert("Users", "Id", (5,)), insert("Posts", "Id N", (5, 1))],
        [insert("Posts", "Id N", (9, 1))],
    ) == {
        0: code_pb2.ALREADY_EXISTS,
        1: code_pb2.OK,
        2: code_pb2.NOT_FOUND,
        3: code_pb2.OK,
        4: code_pb2.NOT_FOUND,
    }
    assert read(database, "Users", "Id") == [[1], [2], [5]]
    assert read(database, "Posts", "Id N") == [[5, 1]]


def test_a_request_without_groups_is_refused(database: Database) -> None:
    with pytest.raises(exceptions.InvalidArgument):
        batch_write(database)

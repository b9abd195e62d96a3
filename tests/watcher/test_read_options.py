"""Priority and directed reads: what the requests of captures carry on the wire."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import proto
import pytest
from fixtures.sent_requests import SentRequests
from fixtures.singers import address_of, capture_of, write_singers
from google.cloud.spanner_v1 import DirectedReadOptions, ExecuteSqlRequest, RequestOptions
from google.cloud.spanner_v1.database import Database

from watcher import Watcher
from watcher.captures.key_ranges import KeyRangeCapture
from watcher.captures.progress import BackfillProgress
from watcher.captures.snapshot import SnapshotCapture
from watcher.model.errors import ConfigurationError
from watcher.settings.spark_parsing import parse_source_options
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.queries import QueryClient
from watcher.spanner.read_options import (
    DirectedRead,
    Priority,
    ReadOptions,
    Replica,
    ReplicaType,
    write_tag,
)
from watcher.spanner.requests import apply_options

READS = ("ExecuteSql", "ExecuteStreamingSql", "StreamingRead")
EAST = Replica("us-east4", ReplicaType.READ_ONLY)
OPTIONS = ReadOptions(Priority.LOW, DirectedRead(include=(EAST,), auto_failover_disabled=True))
SPARK = {"project": "p1", "instance": "i1", "database": "d1", "table": "T"}


def message_of(request: Any) -> Any:
    """The message of a request, below the client's wrapper."""
    return type(request).pb(request) if isinstance(request, proto.Message) else request


def reads(
    sent_requests: SentRequests,
) -> list[tuple[str, RequestOptions.Priority, DirectedReadOptions]]:
    """What the reads asked for; reads of transactions are none."""
    options = []
    for method, request in sent_requests:
        message: Any = message_of(request)
        if method in READS:
            options.append(
                (method, message.request_options.priority, message.directed_read_options)
            )
    return options


def test_every_read_of_a_capture_carries_the_options(
    singers: Database, sent_requests: SentRequests
) -> None:
    with singers.batch() as batch:
        batch.insert("Singers", ("SingerId", "LastName"), [(1, "one")])
    poll = replace(capture_of(singers), queries=QueryClient(address_of(singers), OPTIONS))
    del sent_requests[:]
    window, changed = poll.look(0)
    assert changed
    assert sum(rows.batch.num_rows for part in poll.plan(window) for rows in poll.read(part)) == 1
    assert KeyRangeCapture(poll).read_page(BackfillProgress(window.end, None))[0]
    snapshot = SnapshotCapture(poll)
    assert all(list(snapshot.read(part)) is not None for part in snapshot.plan(window))
    options = reads(sent_requests)
    assert {method for method, _, _ in options} == set(READS)
    assert {priority for _, priority, _ in options} == {RequestOptions.Priority.PRIORITY_LOW}
    for _, _, directed in options:
        assert directed.include_replicas.auto_failover_disabled
        (selection,) = directed.include_replicas.replica_selections
        assert (selection.location, selection.type_) == ("us-east4", 2)


def test_a_watcher_asks_as_its_configuration_says(
    singers: Database, sent_requests: SentRequests
) -> None:
    watcher = Watcher(
        database=str(address_of(singers)),
        tables=["Singers"],
        priority="medium",
        directed_read={"exclude": [{"type": "read-write"}]},
    )
    watcher.on_change(print)
    watcher.run_once()
    options = [(priority, directed) for _, priority, directed in reads(sent_requests) if priority]
    assert options
    for priority, directed in options:
        assert priority == RequestOptions.Priority.PRIORITY_MEDIUM
        (selection,) = directed.exclude_replicas.replica_selections
        assert (selection.location, selection.type_) == ("", 1)


def test_without_options_spanner_chooses() -> None:
    request = ExecuteSqlRequest(sql="SELECT 1")
    apply_options(ReadOptions(), request)
    options = RequestOptions(request_tag="spanner-watcher")
    assert request == ExecuteSqlRequest(sql="SELECT 1", request_options=options)


def test_queries_and_transactions_have_a_tag(
    singers: Database, sent_requests: SentRequests
) -> None:
    watcher = Watcher(
        database=str(address_of(singers)), tables=["Singers"], consumer="größte", start="earliest"
    )
    write_singers(singers, range(3), "x")
    del sent_requests[:]
    watcher.on_change(lambda _: None)
    watcher.run_once()
    tags: dict[str, set[str]] = {}
    for method, request in sent_requests:
        options = getattr(message_of(request), "request_options", None)
        if options is not None:
            tags.setdefault(method, set()).update({options.request_tag, options.transaction_tag})
    assert "spanner-watcher/watch/gr__te" in tags["ExecuteStreamingSql"]
    assert tags["Commit"] == {"", "spanner-watcher"}


def test_a_tag_is_as_long_as_spanner_allows() -> None:
    assert len(write_tag("watch", "x" * 90)) == 50


@pytest.mark.parametrize(
    ("directed", "message"),
    [
        ({}, "one of 'include' and 'exclude'"),
        ({"include": [{}]}, "a replica needs a location, a type"),
        ({"include": [{"type": "leader"}]}, "'read-only' or 'read-write'"),
        ({"include": [{"location": "a"}] * 11}, "at most 10 replicas"),
        ({"exclude": [{"location": "a"}], "include": [{"location": "b"}]}, "one of 'include'"),
        (
            {"exclude": [{"location": "a"}], "auto_failover_disabled": True},
            "goes with 'include', not with 'exclude'",
        ),
        ({"includ": []}, "did you mean 'include'"),
        ({"include": [{"locaton": "a"}]}, "did you mean 'location'"),
    ],
)
def test_what_spanner_would_refuse_is_refused_at_once(
    directed: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_watch_config(
            {"database": "projects/p1/instances/i1/databases/d1", "directed_read": directed}
        )


def test_the_options_of_spark_are_the_same_in_its_own_spelling() -> None:
    directed = {"include": [{"location": "us-east4", "type": "read-only"}]}
    options = parse_source_options(
        SPARK
        | {
            "priority": "low",
            "directedRead": json.dumps(directed | {"autoFailoverDisabled": True}),
            "outageSeconds": "5m",
        }
    )
    assert options.read_options == OPTIONS
    assert options.outage_seconds == 300


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("priority", "lowest", "'low', 'medium' or 'high'"),
        ("directedRead", "us-east4", "directedRead"),
        ("directedRead", "{}", "one of 'include' and 'exclude'"),
    ],
)
def test_wrong_options_of_spark_are_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        parse_source_options(SPARK | {name: value})

"""What is not urgent yields to others: a low priority in the requests of backfills, copies, verify
and clearing; Data Boost, and what is said where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import proto
import pytest
from fixtures.consumers import watcher_of, write
from fixtures.replicas import replicate
from fixtures.sent_requests import SentRequests
from fixtures.server import VARIABLE
from fixtures.singers import SINGERS, address_of, capture_of, make_watchable, write_singers
from fixtures.wrong_values import run_here
from google.cloud.spanner_v1 import RequestOptions
from google.cloud.spanner_v1.database import Database

from emulator import transport
from emulator.server import start
from watcher.captures.snapshot import SnapshotCapture
from watcher.consumers.clearing import Clearing
from watcher.consumers.clearing.methods import Method
from watcher.consumers.positions import SpannerPositions
from watcher.model.errors import AccessDeniedError, ConfigurationError
from watcher.model.window import BEGINNING, Window
from watcher.settings.spark_parsing import parse_source_options
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.database import connect, create_on_emulator
from watcher.tables.discovery import discover_table

UNSET, LOW, MEDIUM = (
    RequestOptions.Priority.PRIORITY_UNSPECIFIED,
    RequestOptions.Priority.PRIORITY_LOW,
    RequestOptions.Priority.PRIORITY_MEDIUM,
)


def read_priorities(sent: SentRequests, *needles: str) -> list[int]:
    """The priorities of the requests that read or write what is named."""
    found = []
    for method, request in sent:
        message: Any = type(request).pb(request) if isinstance(request, proto.Message) else request
        text = f"{method} {getattr(message, 'sql', '')} {getattr(message, 'table', '')}"
        if all(needle in text for needle in needles):
            found.append(message.request_options.priority)
    return found


@pytest.mark.parametrize(("more", "expected"), [({}, LOW), ({"priority": "medium"}, MEDIUM)])
def test_a_backfill_yields_unless_a_priority_is_named(
    singers: Database, sent_requests: SentRequests, more: dict[str, object], expected: int
) -> None:
    write(singers, 1, 2)
    del sent_requests[:]
    watcher = watcher_of(singers, [], start="latest", backfill=["Singers"], **more)
    watcher.run_once()
    assert set(read_priorities(sent_requests, "StreamingRead", "Singers")) == {expected}
    looks = read_priorities(sent_requests, "ExecuteSql", "FROM `Singers`")
    assert set(looks) == {MEDIUM if more else UNSET}


@pytest.mark.parametrize("method", [Method.INDEX, Method.PARTITIONED])
def test_clearing_yields(singers: Database, sent_requests: SentRequests, method: Method) -> None:
    write(singers, 1, 2)
    watcher_of(singers, [], consumer="me").run_once()
    database = connect(address_of(singers))
    table = discover_table(database, "Singers")
    del sent_requests[:]
    assert Clearing(database, table, SpannerPositions(database), 0.0, method).clear().rows == 2
    touched = read_priorities(sent_requests, "Singers`") + read_priorities(
        sent_requests, "StreamingRead", "Singers"
    )
    assert set(touched) == {LOW}
    # By key, every commit but that of cleared-to.
    commits = read_priorities(sent_requests, "Commit")
    assert commits.count(LOW) == len(commits) - 1


def test_copies_are_loaded_and_verified_at_a_low_priority(
    singers: Database, sent_requests: SentRequests, tmp_path: Path
) -> None:
    write(singers, 1, 2)
    del sent_requests[:]
    replicate(singers, tmp_path)
    assert set(read_priorities(sent_requests, "StreamingRead", "Singers")) == {LOW}
    del sent_requests[:]
    outcome = run_here(["verify", "--to", f"delta:{tmp_path}"])
    assert outcome.code == 0, outcome.err
    assert set(read_priorities(sent_requests, "FROM `Singers`")) == {LOW}


class Refusing(grpc.ServerInterceptor):  # type: ignore[type-arg]  # generic in stubs only
    """Refuses reads by Data Boost, as Spanner does."""

    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        self._code = code
        self._words = words

    def intercept_service(self, continuation: Any, details: Any) -> Any:
        """As gRPC's."""
        handler = continuation(details)
        if not details.method.endswith(("ExecuteStreamingSql", "StreamingRead")):
            return handler

        def serve(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
            if request.data_boost_enabled:
                context.abort(self._code, self._words)
            yield from handler.unary_stream(request, context)

        return grpc.unary_stream_rpc_method_handler(
            serve, handler.request_deserializer, handler.response_serializer
        )


@pytest.mark.parametrize(
    ("code", "words", "error", "advice"),
    [
        (
            grpc.StatusCode.PERMISSION_DENIED,
            "Caller is missing IAM permission spanner.databases.useDataBoost",
            AccessDeniedError,
            r"grant spanner\.databases\.useDataBoost on the database",
        ),
        (
            grpc.StatusCode.UNIMPLEMENTED,
            "Data Boost is not supported",
            ConfigurationError,
            "Spanner Omni has none; read without it",
        ),
    ],
)
def test_what_data_boost_needs_is_said(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    code: grpc.StatusCode,
    words: str,
    error: type[Exception],
    advice: str,
) -> None:
    monkeypatch.setenv(transport.VARIABLE, transport.Transport.GRPCIO)
    recorded = partial(grpc.server, interceptors=[Refusing(code, words)])
    monkeypatch.setattr(grpc, "server", recorded)
    with start() as server:
        monkeypatch.setenv(VARIABLE, server.address)
        address = DatabaseAddress.parse("projects/project/instances/instance/databases/boost")
        create_on_emulator(address, [SINGERS])
        database = connect(address)
        make_watchable(database)
        write_singers(database, [1, 2], "name")
        poll = capture_of(database)
        window = Window(BEGINNING, poll.queries.fetch_read_timestamp())

        def read(boost: bool) -> int:
            capture = SnapshotCapture(poll, data_boost=boost)
            parts = [part for each in capture.plan(window) for part in capture.read(each)]
            return sum(part.batch.num_rows for part in parts)

        assert read(boost=False) == 2
        with pytest.raises(error, match=advice):
            read(boost=True)
        copies = {"to": f"delta:{tmp_path}", "data_boost": True}
        with pytest.raises(error, match=advice):
            replicate(database, tmp_path, replica=copies)


def test_changes_between_two_timestamps_cannot_be_read_by_data_boost() -> None:
    place = {"project": "project", "instance": "instance", "database": "data", "table": "T"}
    with pytest.raises(ConfigurationError, match="are read through an index"):
        parse_source_options(place | {"dataBoost": "true", "startingTimestamp": "earliest"})
    parse_source_options(place | {"dataBoost": "true", "snapshotTimestamp": "latest"})

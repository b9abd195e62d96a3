"""Connections that are dead without a word: a firewall has forgotten them, a proxy is gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.consumers import watcher_of, write
from fixtures.pace import allow
from fixtures.server import VARIABLE
from fixtures.singers import address_of
from fixtures.stalling_network import StallingNetwork
from google.api_core import grpc_helpers
from google.api_core.exceptions import ServiceUnavailable
from google.cloud import spanner
from google.cloud.spanner_v1.database import Database
from google.cloud.spanner_v1.instance import Instance
from google.oauth2.credentials import Credentials

from emulator.process import ServerProcess
from watcher import Change
from watcher.spanner import channels
from watcher.spanner.bounded_client import BoundedDatabase, BoundedSpanner
from watcher.spanner.database import open_client, open_database

CALL_SECONDS_MAX = 60
"""A call that nobody answers would end so late by its own deadline."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pings are sent soon."""
    monkeypatch.setattr(channels, "KEEPALIVE_SECONDS", 0.2)
    monkeypatch.setattr(channels, "ANSWER_SECONDS_MAX", allow(0.5))


@pytest.fixture
def network(server: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> Iterator[StallingNetwork]:
    network = StallingNetwork(server.address)
    monkeypatch.setenv(VARIABLE, network.address)
    yield network
    network.close()


Call = Callable[..., object]


def call_session(database: Database, _client: spanner.Client, **more: Any) -> object:
    return database.spanner_api.create_session(
        database=database.name, timeout=allow(CALL_SECONDS_MAX), **more
    )


def call_database_admin(database: Database, client: spanner.Client, **more: Any) -> object:
    return client.database_admin_api.get_database_ddl(
        database=database.name, timeout=allow(CALL_SECONDS_MAX), **more
    )


def call_instance_admin(_database: Database, client: spanner.Client, **more: Any) -> object:
    return client.instance_admin_api.list_instances(
        parent=client.project_name, timeout=allow(CALL_SECONDS_MAX), **more
    )


@pytest.mark.essential
@pytest.mark.parametrize("call", [call_session, call_database_admin, call_instance_admin])
def test_a_call_notices_that_its_connection_is_dead(
    database: Database, network: StallingNetwork, call: Call
) -> None:
    address = address_of(database)
    opened, client = open_database(address), open_client(address)
    assert isinstance(opened, BoundedDatabase)
    call(opened, client)
    network.stall()
    with pytest.raises(ServiceUnavailable):
        call(opened, client, retry=None)
    # Over a new connection. The first attempt may still meet the old one while it closes, so
    # this call is retried as the client does by itself.
    call(opened, client)


@pytest.mark.essential
def test_a_consumer_goes_on_over_a_new_connection(
    singers: Database, network: StallingNetwork
) -> None:
    seen: list[Change] = []
    watcher = watcher_of(singers, seen, consumer="me")
    write(singers, 1)
    watcher.run_once()
    network.stall()
    write(singers, 2)  # by the connection of the fixture
    watcher.run_once()
    assert [change.key["SingerId"] for change in seen] == [1, 2]


def test_a_slow_answer_is_waited_for(database: Database, faults: Callable[..., None]) -> None:
    api = open_database(address_of(database)).spanner_api
    query = {"session": api.create_session(database=database.name).name, "sql": "SELECT 1"}
    faults(latency_seconds=6.0)  # a server that allows no pings ends the connection after four
    assert api.execute_sql(request=query, retry=None, timeout=allow(CALL_SECONDS_MAX)).rows


def test_channels_to_cloud_spanner_ask_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)
    opened: list[dict[str, int]] = []
    create = grpc_helpers.create_channel

    def create_channel(*args: Any, **more: Any) -> Any:
        opened.append(dict(more["options"]))
        return create(*args, **more)

    monkeypatch.setattr(grpc_helpers, "create_channel", create_channel)
    client = BoundedSpanner("p", Credentials("token"), disable_builtin_metrics=True)
    database = BoundedDatabase("d", Instance("i", client))
    for api in (database.spanner_api, client.database_admin_api, client.instance_admin_api):
        assert api.transport.host == "spanner.googleapis.com:443"
    assert [options["grpc.keepalive_time_ms"] for options in opened] == [200, 200, 200]
    assert all("grpc.http2.ping_timeout_ms" in options for options in opened)

"""A Spanner that is not Google's own (Spanner Omni): the same client, another endpoint."""

from __future__ import annotations

import os

import pytest
from fixtures.singers import SINGERS, make_watchable

from emulator.process import ServerProcess
from watcher import Change, Watcher
from watcher.model.errors import ConfigurationError
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.address import DatabaseAddress, Endpoint
from watcher.spanner.database import connect, create_on_emulator

PATH = "projects/default/instances/default/databases/omni"


def test_a_plain_text_endpoint_is_watched(server: ServerProcess) -> None:
    create_on_emulator(DatabaseAddress.parse(PATH), [SINGERS])
    emulator = os.environ.pop("SPANNER_EMULATOR_HOST")
    try:
        endpoint = {"api_endpoint": server.address, "plain_text": True}
        database = connect(DatabaseAddress.parse(PATH, Endpoint(server.address, plain_text=True)))
        make_watchable(database)
        with database.batch() as batch:
            batch.insert("Singers", ("SingerId",), [(1,)])
        seen: list[Change] = []
        watcher = Watcher(database=PATH, start="earliest", endpoint=endpoint)
        watcher.on_change(seen.append)
        watcher.run_once()
        assert [change.key["SingerId"] for change in seen] == [1]
    finally:
        os.environ["SPANNER_EMULATOR_HOST"] = emulator
        connect(DatabaseAddress.parse(PATH)).drop()


def test_a_misspelt_endpoint_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="did you mean 'plain_text'"):
        parse_watch_config(
            {"database": PATH, "endpoint": {"api_endpoint": "x:1", "plaintext": True}}
        )

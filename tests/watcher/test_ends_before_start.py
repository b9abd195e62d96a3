"""A watcher that is asked to end before it has started ends as asked, and what keeps it from
starting is tried again over a new connection."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fixtures.consumers import options, watcher_of, write
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import MemoryPositions
from watcher.consumers.states import State
from watcher.model.errors import LeaseHeldError
from watcher.runners.watcher_run.connection import Connection
from watcher.runners.watcher_run.lifecycle import Lifecycle
from watcher.runners.watcher_run.startup import retry_connected
from watcher.settings.watcher import parse_watch_config


def test_an_instance_on_standby_that_is_stopped_ends_without_an_error(music: Database) -> None:
    seen, never = ChangeCollector(), list[Change]()
    first = Watcher(**options(music, consumer="orders"))
    first.on_change(seen)
    second = watcher_of(music, never, consumer="orders", standby=True)
    with run_without_error(first):
        write(music, 1)
        seen.wait(1)
        second.stop()
        second.run()
        assert second.state is State.STOPPED
        second.stop()
        with pytest.raises(LeaseHeldError, match="another instance runs as consumer 'orders'"):
            second.run_once()  # what is there was not delivered
        write(music, 2)
        seen.wait(2)
    assert not never


def test_what_has_failed_is_tried_again_over_a_new_connection(
    music: Database, faults: Callable[..., None]
) -> None:
    """The client would keep a session that the server has lost for weeks."""
    config = parse_watch_config(options(music, consumer="orders"))
    connection = Connection(config, MemoryPositions())
    faults(lost_sessions=1)
    attempts: list[Consumers | None] = []

    def attempt() -> int:
        attempts.append(connection.consumers)
        assert connection.consumers is not None
        return len(connection.consumers.list_all())

    assert retry_connected(Lifecycle(lambda: 0), connection, attempt) == 0
    first, second = attempts
    assert first is not second

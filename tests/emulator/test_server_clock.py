"""The server goes on at the same pace while the clock of the machine is set."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime
from functools import partial

import pytest
from fixtures.server import connect
from fixtures.shifted_clock import ShiftedClock
from fixtures.warm_python import WarmProcess

from emulator import process


@pytest.mark.parametrize("seconds", [-600, 600])
def test_timestamps_go_on_while_the_clock_is_set(shifted_clock: ShiftedClock, seconds: int) -> None:
    environment = os.environ | shifted_clock.environment
    start = partial(WarmProcess, stdout=subprocess.PIPE, env=environment)
    with process.spawn(start=start) as server:
        database = connect(server.address).database("set-clock")
        database.create().result(30)

        def fetch_now() -> datetime:
            with database.snapshot() as snapshot:
                now: datetime = next(iter(snapshot.execute_sql("SELECT CURRENT_TIMESTAMP()")))[0]
            return now

        before = fetch_now()
        shifted_clock.set(seconds)
        between = fetch_now()
        after = fetch_now()
    assert before < between < after
    assert (after - before).total_seconds() < abs(seconds)

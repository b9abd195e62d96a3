"""What is the matter with a consumer is derived from facts, in one place, and shown everywhere."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fixtures.bad_days import CASES, DATABASE, ERROR, FAR, NOW, SECOND, consumer, ended, table
from fixtures.consumers import options, watcher_of, write
from fixtures.singers import address_of
from fixtures.watcher_threads import run_in_thread
from fixtures.wrong_values import run_here
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from watcher import Change, Watcher
from watcher.consumers.positions import TABLE
from watcher.consumers.states import State, StoredError
from watcher.model.window import BEGINNING
from watcher.overview.conditions import LEVELS, Condition, Level, judge
from watcher.overview.metrics import OverviewCollector
from watcher.overview.observer import Observer
from watcher.overview.values import ConsumerOverview, Count, Overview
from watcher.runners.watcher_run.lifecycle import CAUGHT_UP


@pytest.mark.parametrize("condition", Condition)
def test_each_condition_follows_from_facts(condition: Condition) -> None:
    health = judge(CASES[condition], DATABASE)
    assert health.worst.condition is condition
    assert health.worst.text
    trouble = health.worst.level is Level.TROUBLE
    assert trouble is (condition not in LEVELS)
    if trouble or condition is Condition.PAUSED:
        assert health.worst.advice, "trouble says what to do"


@pytest.mark.parametrize(
    ("facts", "condition"),
    [
        (consumer(last_error=replace(ERROR, occurred_at=NOW - 60 * SECOND)), Condition.RUNNING),
        (consumer(state="FAILED"), Condition.FAILING),
        (
            consumer(table(position=BEGINNING, lag_seconds=None), last_error=ERROR),
            Condition.FAILING,
        ),
        (consumer(replace(FAR, note="not counted: too many")), Condition.BEHIND),
        (consumer(table(note="no index that the schema knows")), Condition.RUNNING),
        (
            consumer(table(lag_seconds=900.0, rows_behind=Count(1)), rows_per_second=0.0),
            Condition.BEHIND,
        ),
        (consumer(replace(FAR, rows_behind=Count(0))), Condition.RUNNING),
        (ended(reason=CAUGHT_UP, dead_letters=2), Condition.HAS_DEAD_LETTERS),
        (replace(ended(), tables=(table(lost_in_seconds=60.0),)), Condition.LOSES_DATA_SOON),
        (
            replace(ended(reason=CAUGHT_UP), tables=(table(lost_in_seconds=60.0),)),
            Condition.FINISHED,
        ),
    ],
)
def test_what_was_green_or_red_without_a_reason(
    facts: ConsumerOverview, condition: Condition
) -> None:
    assert judge(facts, DATABASE).worst.condition is condition


@given(
    st.sampled_from(State),
    st.booleans(),
    st.none() | st.floats(-10, 1e6),
    st.none() | st.floats(0, 1e6),
    st.integers(0, 3),
    st.sampled_from([None, ERROR]),
)
def test_there_is_always_a_condition_and_the_worst_comes_first(
    state: State,
    alive: bool,
    lost: float | None,
    lag: float | None,
    dead: int,
    error: StoredError | None,
) -> None:
    of_table = table(lost_in_seconds=lost, lag_seconds=lag, rows_behind=Count(1))
    end = NOW if not alive and state in (State.STOPPED, State.FAILED_PERMANENTLY) else None
    facts = consumer(
        of_table, state=str(state), alive=alive, dead_letters=dead, last_error=error, ended_at=end
    )
    findings = judge(facts, DATABASE).findings
    order = [list(Condition).index(each.condition) for each in findings]
    assert order
    assert order == sorted(order)


# The same in every place.


def read(database: Database) -> Overview:
    return Observer(database, address_of(database), TABLE, 0.0).read()


def read_conditions(database: Database) -> dict[str, str]:
    """By consumer, where they are shown; all places say the same."""
    overview = read(database)
    derived = {
        e.consumer: str(judge(e, overview.database).worst.condition) for e in overview.consumers
    }
    shown = json.loads(run_here(["status", "-d", str(address_of(database)), "--json"]).out)
    assert {row["consumer"]: row["condition"] for row in shown["consumers"]} == derived
    assert [row["consumer"] for row in shown["consumers"]] == list(derived)
    registry = CollectorRegistry()
    registry.register(OverviewCollector(lambda: overview))
    metrics = generate_latest(registry).decode()
    for name, condition in derived.items():
        assert f'consumer_condition{{condition="{condition}",consumer="{name}"' in metrics
    return derived


def test_a_callback_that_refuses_is_failing_and_a_finished_run_is_not(
    music: Database, tmp_path: Path
) -> None:
    write(music, 1)
    refused, repaired = threading.Event(), threading.Event()

    def refuse(_: Change) -> None:
        refused.set()
        if not repaired.is_set():
            raise ValueError("no such account")

    watcher_of(music, [], consumer="a-finished").run_once()
    delivery: dict[str, Any] = {"retries": 1_000, "backoff": "10ms"}
    failing = Watcher(**options(music, consumer="failing", delivery=delivery, lease="1s"))
    failing.on_change(refuse)
    dead: dict[str, Any] = {"retries": 0, "then": "skip", "dead_letters": tmp_path / "dead"}
    skipping = Watcher(**options(music, consumer="skipping", delivery=dead))
    skipping.on_change(refuse)
    skipping.run_once()
    refused.clear()
    with run_in_thread(failing):
        assert refused.wait(60)
        assert until_failed(music) == ["failing"]
        conditions = read_conditions(music)
        assert list(conditions) == ["failing", "skipping", "a-finished"]
        assert conditions == {
            "failing": "failing",
            "skipping": "has-dead-letters",
            "a-finished": "finished",
        }
        shown = run_here(["status", "-d", str(address_of(music))]).out
        assert re.search(r"fails, and tries again; .* is refused and tried again .Value", shown)
        assert "its file of dead letters has 1 " in shown
        repaired.set()


def test_a_part_whose_callback_refuses_is_failing(music: Database) -> None:
    write(music, 1)
    repaired = threading.Event()

    def refuse(_: Change) -> None:
        if not repaired.is_set():
            raise ValueError("no such account")

    delivery: dict[str, Any] = {"retries": 1_000, "backoff": "10ms"}
    shared = Watcher(**options(music, consumer="c", parts=1, delivery=delivery, lease="1s"))
    shared.on_change(refuse)
    with run_in_thread(shared):
        (name,) = until_failed(music)
        assert read_conditions(music)[name] == "failing"
        repaired.set()


def until_failed(database: Database) -> list[str]:
    """The consumers that say with their lease that they fail, and why, once there are some."""
    waiting = threading.Event()
    for _ in range(600):
        consumers = read(database).consumers
        failed = [each for each in consumers if each.state == "FAILED" and each.last_error]
        if failed:
            return [each.consumer for each in failed]
        waiting.wait(0.05)
    raise AssertionError(read(database).consumers)

"""The explorer itself: it finds what it must, every schedule once, and replays what it found."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from interleavings.choosers import (
    Exhaustive,
    Prescribed,
    RandomPriorities,
    format_trace,
    parse_trace,
)
from interleavings.explore import Explorer
from interleavings.scenarios import VARIANTS
from interleavings.scenarios.base import Variant
from interleavings.scheduler import Chooser, Crashed, Scheduler, StuckError, current_scheduler
from interleavings.virtual_clock import VirtualClock
from interleavings.virtual_time import control_time

pytestmark = pytest.mark.timeout(120)


@dataclass
class Counter:
    """Two actors add to it; reading and writing are steps of their own."""

    value: int = 0
    log: list[str] = field(default_factory=list)

    def add(self) -> None:
        current_scheduler().gate("read")
        seen = self.value
        current_scheduler().gate("write")
        self.value = seen + 1


def play(
    chooser: Chooser, *bodies: Callable[[], object], crashes: dict[str, int] | None = None
) -> Scheduler:
    """A schedule of the actors A, B and so on."""
    clock = VirtualClock()
    with control_time(clock):
        scheduler = Scheduler(clock, chooser, crashes or {})
        for name, body in zip("ABC", bodies, strict=False):
            scheduler.add(name, body)
        scheduler.run()
    return scheduler


def lost_updates(preemptions: int) -> tuple[int, list[str]]:
    """How many schedules there are, and those in which an addition is lost."""
    searched, losing, traces = Exhaustive(preemptions), [], set()
    for chooser in searched:
        counter = Counter()
        trace = format_trace(play(chooser, counter.add, counter.add).trace)
        searched.learn(chooser)
        assert trace not in traces
        traces.add(trace)
        if counter.value != 2:
            losing.append(trace)
    return len(traces), losing


def test_a_lost_update_needs_one_preemption() -> None:
    assert lost_updates(0) == (2, [])
    schedules, losing = lost_updates(1)
    assert schedules > 2
    assert losing


def test_all_schedules_of_two_actors_are_found() -> None:
    # Three steps each, of which the first decides who begins: 6! / (3! 3!) orders.
    assert lost_updates(6)[0] == 20


def test_a_schedule_is_played_again() -> None:
    _, losing = lost_updates(1)
    counter = Counter()
    again = play(Prescribed(parse_trace(losing[0])), counter.add, counter.add)
    assert counter.value == 1
    assert format_trace(again.trace) == losing[0]


def test_the_same_seed_gives_the_same_schedule() -> None:
    traces = {
        format_trace(play(RandomPriorities("7", 6, 2, 0.0), Counter().add, Counter().add).trace)
        for _ in range(3)
    }
    assert len(traces) == 1


def test_a_schedule_that_does_not_fit_is_refused() -> None:
    with pytest.raises(StuckError, match="only A B can go on"):
        play(Prescribed(["C"]), Counter().add, Counter().add)


def test_who_sleeps_wakes_in_virtual_time() -> None:
    order: list[str] = []

    def sleep(name: str, seconds: float) -> None:
        current_scheduler().wait(seconds)
        order.append(name)

    play(Prescribed(()), lambda: sleep("long", 3600.0), lambda: sleep("short", 1.0))
    assert order == ["short", "long"]


def test_who_waits_for_nothing_is_reported() -> None:
    with pytest.raises(StuckError, match="nobody can go on"):
        play(Prescribed(()), lambda: current_scheduler().wait(None, lambda: False))


def test_a_crash_before_and_after() -> None:
    sent: list[str] = []

    def send() -> None:
        after = current_scheduler().gate("send")
        sent.append("sent")
        assert after is False

    play(Prescribed(["A", "A!"]), send, crashes={"A": 1})
    assert sent == []


def test_an_actor_dies_by_a_crash_in_a_thread_of_its_own() -> None:
    died: list[str] = []

    def parent() -> None:
        child = threading.Thread(target=lambda: current_scheduler().gate("send"))
        child.start()
        try:
            current_scheduler().wait(None, lambda: False)
        except Crashed:
            died.append("parent")

    play(Prescribed(["A", "A.1", "A.1!"]), parent, crashes={"A": 1})
    assert died == ["parent"]


def test_tokens_are_written_and_read() -> None:
    tokens = ["A", "A", "B", "A.1", "A?", "B!"]
    assert format_trace(tokens) == "A*2 B A.1 A? B!"
    assert parse_trace(format_trace(tokens)) == tokens
    with pytest.raises(ValueError, match="invalid step 'A\\*x' of a schedule"):
        parse_trace("A*x")


def test_an_rpc_that_was_executed_before_its_actor_died_has_happened() -> None:
    """The first commit of W is its third token: it begins, it is about to send, it has sent."""
    variant = VARIANTS["latest"]
    with Explorer(Variant("crash", {"W": variant.actors["W"]}, (), crashes={"W": 1})) as explorer:
        lived = explorer.run(Prescribed(parse_trace("W W?")))
        died = explorer.run(Prescribed(parse_trace("W W!")))
    assert lived.problems == died.problems == ()
    assert lived.trace[:2] == ("W", "W?")


def test_nothing_runs_beside_a_schedule() -> None:
    """A thread of the server takes locks in the machine's time: no schedule could repeat that."""
    before = set(threading.enumerate())
    with Explorer(VARIANTS["latest"]):
        more = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in more if not name.startswith("maintenance-multiplexed")}, more


@pytest.mark.parametrize("name", ["index-again", "spark-columns", "stream-new-table"])
def test_one_schedule_leaves_nothing_for_the_next(name: str) -> None:
    """Each changes the schema: the server knows the operations of the schedules before."""
    with Explorer(VARIANTS[name]) as explorer:
        outcomes = list(explorer.random(seed=77, schedules=2))
    assert [outcome.problems for outcome in outcomes] == [(), ()]

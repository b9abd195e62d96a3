"""The search with fewer schedules finds every outcome that the search of all of them finds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from interleavings.choosers import Exhaustive
from interleavings.races import footprints, order_class, races
from interleavings.scheduler import Scheduler, current_scheduler
from interleavings.virtual_clock import VirtualClock
from interleavings.virtual_time import control_time

UNBOUNDED = 100
TABLES = ("Rows", "Others")
Program = list[tuple[str, str]]
"""Operations of an actor: read or write, and the table."""

PROGRAMS = st.lists(
    st.lists(st.tuples(st.sampled_from(["read", "write"]), st.sampled_from(TABLES)), max_size=3),
    min_size=2,
    max_size=2,
)


@dataclass
class Memory:
    """What actors share; what each has seen is part of the outcome."""

    values: dict[str, tuple[object, ...]] = field(default_factory=lambda: dict.fromkeys(TABLES, ()))
    seen: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def actor(self, name: str, program: Program) -> Callable[[], None]:
        """Follows a program; what it writes says what it has read."""

        def body() -> None:
            self.seen[name] = ()
            for kind, table in program:
                if kind == "read":
                    current_scheduler().gate(f"ExecuteSql SELECT 1 FROM `{table}`")
                    self.seen[name] += (self.values[table],)
                else:
                    current_scheduler().gate(f"Commit {table}")
                    self.values[table] = (name, self.seen[name], self.values[table])

        return body

    def outcome(self) -> tuple[object, ...]:
        """Everything that an order could have changed."""
        return (tuple(self.values.items()), tuple(sorted(self.seen.items())))


def outcomes(programs: list[Program], bound: int, *, reduced: bool) -> tuple[set[object], int]:
    """What can come of programs, and the schedules that were run to know it."""
    searched, schedules = Exhaustive(bound), 0
    reached: set[object] = set()
    for chooser in searched:
        memory, clock = Memory(), VirtualClock()
        with control_time(clock):
            scheduler = Scheduler(clock, chooser, {})
            for name, program in zip("AB", programs, strict=True):
                scheduler.add(name, memory.actor(name, program))
            scheduler.run()
        searched.learn(chooser, scheduler.labels if reduced else None)
        reached.add(memory.outcome())
        schedules += 1
    return reached, schedules


@given(PROGRAMS)
@settings(max_examples=25, deadline=None)
def test_every_outcome_is_found_with_fewer_schedules(programs: list[Program]) -> None:
    all_outcomes, schedules = outcomes(programs, UNBOUNDED, reduced=False)
    reduced_outcomes, fewer = outcomes(programs, UNBOUNDED, reduced=True)
    assert reduced_outcomes == all_outcomes
    assert fewer <= schedules


@given(PROGRAMS)
@settings(max_examples=25, deadline=None)
def test_every_outcome_of_two_preemptions_is_found(programs: list[Program]) -> None:
    assert outcomes(programs, 2, reduced=True)[0] == outcomes(programs, 2, reduced=False)[0]


def test_a_commit_depends_on_what_its_transaction_has_read() -> None:
    trace = ["A", "B", "A"]
    labels = ["ExecuteSql SELECT 1 FROM `Rows`", "Commit Rows", "Commit Others"]
    assert list(races(trace, footprints(trace, labels))) == [(0, "B"), (1, "A")]


def test_the_order_of_reads_makes_no_difference() -> None:
    reads = {"A": "ExecuteSql SELECT 1 FROM `Rows`", "B": "ExecuteSql SELECT 2 FROM `Rows`"}
    there, back = ["A", "B"], ["B", "A"]
    assert order_class(there, [reads[each] for each in there]) == order_class(
        back, [reads[each] for each in back]
    )
    writes = {"A": "Commit Rows", "B": "ExecuteSql SELECT 2 FROM `Rows`"}
    assert order_class(there, [writes[each] for each in there]) != order_class(
        back, [writes[each] for each in back]
    )


def test_the_order_in_which_transactions_begin_makes_a_difference() -> None:
    trace = ["A", "B"]
    read = "ExecuteSql SELECT 1 FROM `{}` (begins)"
    labels = [read.format("Rows"), read.format("Others")]
    assert list(races(trace, footprints(trace, labels))) == [(0, "B")]

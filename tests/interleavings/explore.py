"""Runs schedules of a scenario and judges them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice

from interleavings import judges
from interleavings.actors import LONG_SECONDS, Run
from interleavings.choosers import (
    BeforeCommits,
    Exhaustive,
    Prescribed,
    RandomPriorities,
    RandomWalk,
    format_trace,
)
from interleavings.fast import skip_repeated_work
from interleavings.fences import Fences, watch_fences
from interleavings.known_schemas import KnownSchemas
from interleavings.scenarios.base import Body, Variant
from interleavings.schedule import explore_schedules
from interleavings.scheduler import Chooser, Scheduler, StuckError
from interleavings.virtual_time import control_time
from interleavings.world import World
from spanner_schema.model.schema import Dialect

CHANGE_POINTS = 3


@dataclass(frozen=True)
class Outcome:
    """One schedule; ``trace`` replays it."""

    trace: tuple[str, ...]
    labels: tuple[str, ...]
    problems: tuple[str, ...]
    name: str = ""

    @property
    def text(self) -> str:
        """The schedule as it is given to --replay."""
        return format_trace(self.trace)


@dataclass
class Summary:
    """What came of many schedules."""

    variant: str
    schedules: int = 0
    steps: int = 0
    seconds: float = 0.0
    failures: list[Outcome] = field(default_factory=list)
    first_failure: int | None = None

    def add(self, part: Summary) -> None:
        """Adds what came of more schedules."""
        self.schedules += part.schedules
        self.steps += part.steps
        self.seconds += part.seconds
        self.failures += part.failures


class Explorer:
    """A variant of a scenario in its world. Leave the ``with`` block to close it."""

    def __init__(self, variant: Variant, dialect: Dialect = Dialect.GOOGLESQL) -> None:
        self.variant = variant
        self._dialect = dialect
        self._length = 1
        self._fences: Fences | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Explorer:
        with ExitStack() as stack:
            self._enter(stack)
            self._stack = stack.pop_all()
        return self

    def _enter(self, stack: ExitStack) -> None:
        """What the ``stack`` holds goes also where a later part of it fails."""
        self.world = World(self.variant.statements, self.variant.watchable, dialect=self._dialect)
        stack.callback(self.world.close)
        stack.enter_context(self.world.serve())
        stack.enter_context(control_time(self.world.clock))
        stack.enter_context(explore_schedules())
        stack.enter_context(watch_fences(lambda: self._fences))
        schemas = KnownSchemas(self.world, bool(self.variant.quiet))
        stack.enter_context(skip_repeated_work(schemas))
        logging.disable(logging.CRITICAL)
        stack.callback(logging.disable, logging.NOTSET)
        self._length = len(self.run(Prescribed(())).trace)

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def run(self, chooser: Chooser, name: str = "") -> Outcome:
        """One schedule."""
        variant, world = self.variant, self.world
        world.reset("0", variant.schema_changes)
        run = Run(world)
        world.gate.quiet_texts = variant.quiet
        fences = self._fences = Fences(run)

        def observe(method: str, request: object, response: object) -> None:
            run.record.observe(method, request)
            fences.observe(method, request, response)

        world.gate.observer = observe
        self._run_unexplored(lambda: variant.prelude(run))
        scheduler = Scheduler(world.clock, chooser, dict(variant.crashes or {}))
        for actor, body in variant.actors.items():
            scheduler.add(actor, self._life(run, actor, body))
        problems: list[str] = []
        try:
            scheduler.run()
            world.end_transactions()
            world.clock.advance(LONG_SECONDS + 1)
            self._run_unexplored(lambda: variant.finale(run))
            problems = judges.find_problems(run.record, variant.expectations, run.kept)
        except StuckError as error:
            problems = [f"stuck: {error}"]
        except Exception as error:  # noqa: BLE001 (a finding)
            problems = [f"the end failed with {type(error).__name__}: {error}"]
        finally:
            world.gate.observer = self._fences = None
        trace, labels = tuple(scheduler.trace), tuple(scheduler.labels)
        return Outcome(trace, labels, tuple(problems), name)

    def _life(self, run: Run, actor: str, body: Body) -> Callable[[], None]:
        return lambda: run.run_with_restarts(actor, lambda: body(run), self.variant.allowed)

    def _run_unexplored(self, body: Callable[[], object]) -> None:
        """Runs something that is not explored, on virtual time."""
        scheduler = Scheduler(self.world.clock, Prescribed(()), {})
        scheduler.add("end", body)
        scheduler.run()

    def random(self, seed: int, schedules: int, first: int = 0) -> Iterator[Outcome]:
        """Schedules at random: priorities and walks in turn."""
        for number in range(first, first + schedules):
            yield self.run(self.chooser(seed, number), f"seed {seed} schedule {number}")

    def chooser(self, seed: int, number: int) -> Chooser:
        """The chooser of one schedule of a seed."""
        text = f"{self.variant.name} {seed} {number}"
        if number % 3 == 1:
            return BeforeCommits(text, self._length, 0.3)
        if number % 3 == 2:
            return RandomWalk(text, self._length, 0.5)
        return RandomPriorities(text, self._length, CHANGE_POINTS, 0.5)

    def exhaustive(self, preemptions: int, schedules: int) -> Iterator[Outcome]:
        """Schedules with few preemptions, fewest first."""
        searched = Exhaustive(preemptions)
        for number, chooser in enumerate(islice(searched, schedules)):
            outcome = self.run(chooser, f"exhaustive schedule {number}")
            searched.learn(chooser, outcome.labels)
            yield outcome

    def summary(self, outcomes: Iterator[Outcome], *, until_failure: bool = False) -> Summary:
        """Runs them all, or until one fails."""
        summary = Summary(self.variant.name)
        began = time.perf_counter()
        for outcome in outcomes:
            summary.schedules += 1
            summary.steps += len(outcome.trace)
            if outcome.problems:
                summary.failures.append(outcome)
                summary.first_failure = summary.first_failure or summary.schedules
                if until_failure:
                    break
        summary.seconds = time.perf_counter() - began
        return summary

"""Which unit runs next: as prescribed, by random priorities (PCT), or in every schedule with few
preemptions.

PCT: Burckhardt, Kothari, Musuvathi, Nagarakatte, "A Randomized Scheduler with Probabilistic
Guarantees of Finding Bugs" (2010). Bounded preemptions: Musuvathi and Qadeer, "Iterative Context
Bounding for Systematic Testing of Multithreaded Programs" (2007).
"""

from __future__ import annotations

import random
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby

from interleavings.races import Order, block_begin, footprints, order_class, races, unit_of
from interleavings.scheduler import CRASH_AFTER, CRASH_BEFORE, StuckError

DECISIVE = ("Commit", "a callback", "offset", "batch")
"""What is about to be sent, or was just done, where others in between do most harm."""
DECISIVE_STEPS = 16
"""About so many of them a schedule has."""
CRASHES = (CRASH_BEFORE, CRASH_AFTER)
RUN = re.compile(r"(?P<token>[^\s*]+)(?:\*(?P<count>\d+))?\Z")


def format_trace(trace: Sequence[str]) -> str:
    """Tokens as a short text: ``A*3 B C?``."""
    runs = [(token, len(list(group))) for token, group in groupby(trace)]
    return " ".join(token if count == 1 else f"{token}*{count}" for token, count in runs)


def parse_trace(text: str) -> list[str]:
    """The tokens of a text of ``format_trace``. Raises ValueError when a step is invalid."""
    tokens: list[str] = []
    for part in text.split():
        match = RUN.match(part)
        if match is None:
            raise ValueError(f"invalid step '{part}' of a schedule: use A, A*3, A! or A?")
        tokens += [match["token"]] * int(match["count"] or 1)
    return tokens


def token_without_switch(current: str | None, tokens: Sequence[str]) -> str:
    """The token of the unit that is running if it is among the tokens, else the first token."""
    return current if current is not None and current in tokens else tokens[0]


@dataclass
class Step:
    """One step: the unit that was running, the tokens that could be chosen, the chosen one."""

    current: str | None
    tokens: tuple[str, ...]
    chosen: str

    def cost(self, token: str) -> int:
        """Preemptions: 1 for a switch away from a unit that could go on, and 1 for a crash."""
        switch = self.current is not None and token.rstrip("!?") != self.current
        return int(switch) + int(token[-1] in CRASHES)


@dataclass
class Prescribed:
    """Follows a list of tokens, then continues without preemption. Records its choices.

    ``lenient`` skips tokens that cannot be chosen: for a schedule of slightly different code.
    """

    prefix: Sequence[str]
    lenient: bool = False
    steps: list[Step] = field(default_factory=list)

    def choose(self, current: str | None, tokens: Sequence[str], sending: str) -> str:
        """As ``Chooser.choose``. Raises StuckError when the prefix does not fit."""
        place = len(self.steps)
        if place < len(self.prefix):
            token = self.prefix[place]
            if token not in tokens and self.lenient:
                token = token_without_switch(current, tokens)
            if token not in tokens:
                raise StuckError(f"step {place} is {token}, but only {' '.join(tokens)} can go on")
        else:
            token = token_without_switch(current, tokens)
        self.steps.append(Step(current, tuple(tokens), token))
        return token


class RandomPriorities:
    """PCT: the actor of the highest priority runs; at ``changes`` random steps it becomes the
    lowest. A crash happens at a random step. ``length``: about how many steps there will be."""

    def __init__(self, seed: str, length: int, changes: int, crash_chance: float) -> None:
        self._random = random.Random(seed)
        self._priorities: dict[str, float] = {}
        self._step = 0
        self._lowest = 0.0
        steps = range(max(length, changes + 1))
        self._changes = frozenset(self._random.sample(steps, changes))
        crashes = self._random.random() < crash_chance
        self._crash_at = self._random.choice(steps) if crashes else None

    def choose(self, current: str | None, tokens: Sequence[str], sending: str) -> str:
        """As ``Chooser.choose``."""
        names = [token for token in tokens if token[-1] not in CRASHES]
        if self._step in self._changes and current is not None:
            self._lowest -= 1
            self._priorities[current] = self._lowest
        best = max(names, key=self._priority)
        self._step += 1
        crashing = [f"{best}{kind}" for kind in CRASHES if f"{best}{kind}" in tokens]
        if self._crash_at is not None and self._step > self._crash_at and crashing:
            self._crash_at = None
            return self._random.choice(crashing)
        return best

    def _priority(self, name: str) -> float:
        return self._priorities.setdefault(name, 1 + self._random.random())


class BeforeCommits(RandomPriorities):
    """Priorities that change where it matters: before a commit, and between two changes, the actor
    that runs may become the lowest. The window of a fault is often one RPC wide."""

    def __init__(self, seed: str, length: int, crash_chance: float) -> None:
        super().__init__(seed, length, 0, crash_chance)
        self._chance = self._random.choice([0.0, 0.0, 0.1, 0.3])
        self._waits = self._random.randrange(1, DECISIVE_STEPS)

    def choose(self, current: str | None, tokens: Sequence[str], sending: str) -> str:
        """As ``Chooser.choose``."""
        decisive = current is not None and sending.startswith(DECISIVE)
        self._waits -= int(decisive)
        chosen = self._waits == 0 or self._random.random() < self._chance
        if decisive and current is not None and chosen:
            self._lowest -= 1
            self._priorities[current] = self._lowest
        return super().choose(current, tokens, sending)


class RandomWalk:
    """Switches to a random unit at random steps; crashes at a random step."""

    def __init__(self, seed: str, length: int, crash_chance: float) -> None:
        self._random = random.Random(seed)
        self._switch = self._random.choice([0.05, 0.15, 0.4])
        crashes = self._random.random() < crash_chance
        self._crash_at = self._random.randrange(max(length, 1)) if crashes else None
        self._step = 0

    def choose(self, current: str | None, tokens: Sequence[str], sending: str) -> str:
        """As ``Chooser.choose``."""
        names = [token for token in tokens if token[-1] not in CRASHES]
        stays = current in names and self._random.random() >= self._switch
        best = current if stays and current is not None else self._random.choice(names)
        self._step += 1
        crashing = [f"{best}{kind}" for kind in CRASHES if f"{best}{kind}" in tokens]
        if self._crash_at is not None and self._step > self._crash_at and crashing:
            self._crash_at = None
            return self._random.choice(crashing)
        return best


class Exhaustive:
    """Every schedule with at most so many preemptions, those with fewer first, each once.

    With ``labels`` given to ``learn``, only schedules whose outcome could differ.
    """

    def __init__(self, preemptions: int) -> None:
        self._bound = preemptions
        self._waiting: list[deque[tuple[str, ...]]] = [deque() for _ in range(preemptions + 1)]
        self._waiting[0].append(())
        self._seen: set[tuple[str, ...]] = {()}
        self._orders: set[Order] = set()

    def __iter__(self) -> Iterator[Prescribed]:
        """Choosers, each for one run; ``learn`` must be called after it."""
        while (prefix := self._next_prefix()) is not None:
            yield Prescribed(prefix)

    def _next_prefix(self) -> tuple[str, ...] | None:
        return next((queue.popleft() for queue in self._waiting if queue), None)

    def learn(self, run: Prescribed, labels: Sequence[str] | None = None) -> None:
        """Adds the schedules that leave a run at one of its steps. ``labels``: what was sent at
        each step; without them every step is one where another unit might go on."""
        if labels is not None and self._known(order_class([s.chosen for s in run.steps], labels)):
            return
        chosen = tuple(step.chosen for step in run.steps)
        costs = list(accumulate((step.cost(step.chosen) for step in run.steps), initial=0))
        others = all_alternatives(run) if labels is None else relevant_alternatives(run, labels)
        for place, token in others:
            total = costs[place] + run.steps[place].cost(token)
            prefix = (*chosen[:place], token)
            if total <= self._bound and prefix not in self._seen:
                self._seen.add(prefix)
                self._waiting[total].append(prefix)

    def _known(self, order: Order) -> bool:
        known = order in self._orders
        self._orders.add(order)
        return known


def all_alternatives(run: Prescribed) -> Iterator[tuple[int, str]]:
    """All that could have been chosen after a run's prefix."""
    for place in range(len(run.prefix), len(run.steps)):
        for token in run.steps[place].tokens:
            if token != run.steps[place].chosen:
                yield place, token


def relevant_alternatives(run: Prescribed, labels: Sequence[str]) -> Iterator[tuple[int, str]]:
    """What could have been chosen with another outcome: a step before one that it depends on, and
    a crash before or after what the actor writes."""
    chosen = [step.chosen for step in run.steps]
    prints = footprints(chosen, labels)
    for raced, unit in races(chosen, prints):
        for place in {raced, block_begin(chosen, raced)}:
            step = run.steps[place]
            able = [token for token in step.tokens if token[-1] not in CRASHES]
            for token in [unit] if unit in able else able:
                if token != unit_of(step.chosen):
                    yield place, token
    for place, step in enumerate(run.steps):
        if prints[place].writes:
            for kind in CRASHES:
                token = unit_of(step.chosen) + kind
                if token in step.tokens and token != step.chosen:
                    yield place, token

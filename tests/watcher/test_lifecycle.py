"""What a run does follows from the newest command of operators, and from its owner."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from watcher.consumers.states import Command, State
from watcher.runners.watcher_run.lifecycle import Lifecycle

SEEN = st.sampled_from([None, Command.PAUSE, Command.DRAIN])
"""What a renewal may say; who is to stop does so, whatever comes after it."""
WISHES = st.sampled_from(["pause", "resume", "drain"])


def start() -> Lifecycle:
    """One that is running; each look at the clock is later than the one before."""
    clock = count(1)
    lifecycle = Lifecycle(lambda: next(clock))
    lifecycle.begin_run()
    lifecycle.note_started()
    return lifecycle


def behaviour(lifecycle: Lifecycle) -> tuple[State, bool, bool]:
    """What it does: the state that operators see, whether it delivers, whether it will end."""
    return lifecycle.state, lifecycle.paused, lifecycle.drain_to is not None


@given(st.lists(SEEN), SEEN)
def test_commands_that_were_seen_before_leave_no_trace(
    before: Sequence[Command | None], newest: Command | None
) -> None:
    long, short = start(), start()
    for command in before:
        long.obey(command)
    long.obey(newest)
    short.obey(newest)
    assert behaviour(long) == behaviour(short)


@given(st.lists(SEEN), st.lists(WISHES))
def test_an_operator_who_takes_everything_back_leaves_what_the_owner_asked_for(
    commands: Sequence[Command | None], wishes: Sequence[str]
) -> None:
    both, alone = start(), start()
    for number in range(max(len(commands), len(wishes))):
        for command in commands[number : number + 1]:
            both.obey(command)
        for wish in wishes[number : number + 1]:
            getattr(both, wish)()
            getattr(alone, wish)()
    both.obey(None)
    assert behaviour(both) == behaviour(alone)


@given(st.lists(st.one_of(SEEN, WISHES)))
def test_whoever_asks_for_a_drain_last_gets_what_was_committed_before(
    asked: Sequence[Command | str | None],
) -> None:
    """A drain is never held up by a pause that came before it, and its end is not an earlier one's
    where it had been taken back."""
    now = 0

    def read_now() -> int:
        return now

    lifecycle = Lifecycle(read_now)
    lifecycle.begin_run()
    lifecycle.note_started()
    for wish in asked:
        now += 1
        if wish is None or isinstance(wish, Command):
            lifecycle.obey(wish)
        else:
            getattr(lifecycle, wish)()
    now += 1
    draining = lifecycle.drain_to is not None and not lifecycle.paused
    lifecycle.obey(Command.DRAIN)
    assert not lifecycle.paused
    assert lifecycle.state is State.DRAINING
    assert lifecycle.drain_to == now or draining


def test_a_drain_that_was_taken_back_does_not_end_the_run() -> None:
    lifecycle = start()
    lifecycle.obey(Command.DRAIN)
    lifecycle.obey(Command.PAUSE)
    lifecycle.note_drained()
    assert not lifecycle.stopping.is_set()
    assert lifecycle.obeyed is None


def test_only_a_drain_that_is_done_was_obeyed() -> None:
    """One who is stopped in the middle leaves the command to the next instance."""
    stopped, drained = start(), start()
    for lifecycle in (stopped, drained):
        lifecycle.obey(Command.DRAIN)
    stopped.stop("SIGTERM")
    drained.note_drained()
    assert (stopped.obeyed, stopped.reason) == (None, "SIGTERM")
    assert (drained.obeyed, drained.reason) == (
        Command.DRAIN,
        "an operator sent the command drain",
    )

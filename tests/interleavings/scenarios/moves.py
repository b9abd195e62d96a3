"""A consumer is divided, merged, renamed and unregistered while instances of it freeze and thaw,
and tables come: rules 6, 13 and 14 of docs/protocol.md."""

from __future__ import annotations

from typing import Any

from interleavings.actors import SHORT_SECONDS, Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import (
    ROWS,
    Body,
    Variant,
    catch_up,
    deliver_and_clear,
    watch_once,
    write_rows,
)
from interleavings.scenarios.schema import FRESH, add_table, alter
from interleavings.scenarios.sharing import join_for, read_shards
from interleavings.scenarios.watching import MORE, TAKEN_OVER, time_passes, write_and_wait
from watcher.consumers.leases import Consumers
from watcher.consumers.merging import merge_parts
from watcher.consumers.moving import End, move_consumer
from watcher.consumers.positions import Position, SpannerPositions
from watcher.consumers.positions.fences import Location
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.positions.values import TABLE as POSITIONS
from watcher.consumers.states import ConsumerProgress, State
from watcher.model.errors import (
    ConfigurationError,
    ConsumerMovedError,
    ConsumerNotFoundError,
    DivisionChangedError,
    LeaseHeldError,
)

MOVED = (*TAKEN_OVER, ConfigurationError, DivisionChangedError)
"""How an instance may end whose consumer others have moved."""
ONE = {"parts": 1, "interval": 2.0, "clearing": None}
"""A shared consumer of one part: what a move is to one part, it is to all."""
STAY_SECONDS = SHORT_SECONDS


def share(seconds: float = STAY_SECONDS, **options: Any) -> Body:
    """An instance of the shared consumer A that leaves after a while."""
    return lambda run: join_for(run, seconds, **(ONE | options))


def run_whole(run: Run) -> None:
    """An instance of A as a whole."""
    run.watcher("a", tables=["*"], start="earliest", lease=SHORT_SECONDS).run_once()


def begin_slowly_shared(run: Run) -> None:
    """Three rows are there; a callback takes its time."""
    run.slow_callbacks = True
    run.write(*(("Rows", key, f"{key}.0") for key in (1, 2, 3)))


def merge_when_frozen(run: Run) -> None:
    """An operator merges the parts of A once their leases have run out, and starts it as a whole,
    which others may do at any time."""
    run.pass_time(SHORT_SECONDS * 2)
    merge_parts(SpannerPositions(run.database), "a")
    run_whole(run)


def end_whole(run: Run) -> None:
    """In the end A is a whole, and delivers what is left."""
    try:
        merge_parts(SpannerPositions(run.database), "a")
    except ConsumerNotFoundError:
        run.kept["whole"] = True
    catch_up("a")(run)


MERGE = Variant(
    "merge",
    {"W": write_and_wait, "A": share(), "O": merge_when_frozen},
    (Expectation("a"),),
    prelude=begin_slowly_shared,
    finale=end_whole,
    allowed=MOVED,
)
DIVIDE = Variant(
    "divide",
    {"W": write_and_wait, "A": run_whole, "B": share()},
    (Expectation("a"),),
    prelude=begin_slowly_shared,
    finale=end_whole,
    allowed=MOVED,
)


OTHER_PARTS = Variant(
    "other-parts",
    {"A": share(tables=["Rows"]), "B": share(tables=["More"], parts=2)},
    (),
    statements=(ROWS, MORE),
    watchable=("Rows", "More"),
    prelude=begin_slowly_shared,
    allowed=MOVED,
)


def forget_all(run: Run) -> None:
    """An operator unregisters A: all of it, or nothing."""
    try:
        unregister(run.database, POSITIONS, "a")
    except LeaseHeldError:
        taken = [m for m in run.record.moves_by("O") if m.position is None]
        if taken:
            run.record.problems.append(f"'forget' was refused, and has taken {taken}")


def begin_shared(run: Run) -> None:
    """A is divided into two parts; then rows come."""
    join_for(run, STAY_SECONDS, interval=2.0, clearing=None)
    run.write(*(("Rows", key, f"{key}.0") for key in range(1, 9)))


def hold_second(run: Run) -> None:
    """An instance of the second part alone."""
    consumers = Consumers(run.database, POSITIONS)
    lease = consumers.acquire("a/2-of-2", SHORT_SECONDS)
    for _ in range(2):
        consumers.renew(lease, State.RUNNING, ConsumerProgress())
    consumers.release(lease, State.STOPPED, ConsumerProgress())


FORGET = Variant(
    "forget",
    {"O": forget_all, "A": hold_second, "T": time_passes},
    (),
    prelude=begin_shared,
    allowed=MOVED,
)


def add_table_and_join(run: Run) -> None:
    """A table with rows that are older than what the consumer has delivered by then."""
    alter(run, FRESH[0])
    run.write(("Fresh", 1, "1.0"), ("Fresh", 2, "2.0"))
    run.write(("Rows", 1, "1.1"))
    share()(run)
    alter(run, FRESH[1])
    share()(run)


SHARED_NEW_TABLE = Variant(
    "shared-new-table",
    {"D": add_table_and_join, "W": write_rows},
    (Expectation("a"),),
    prelude=share(),
    finale=share(SHORT_SECONDS * 3),
    schema_changes=True,
    quiet=(),
    allowed=MOVED,
)


def merge_and_add(run: Run) -> None:
    """An operator merges A, which does not run; then a table comes."""
    merge_parts(SpannerPositions(run.database), "a")
    add_table(run)


def begin_with_other(run: Run) -> None:
    """Both have run before, so that it is known what they watch."""
    share()(run)
    watch_once("c")(run)


def clear_before_the_end(run: Run) -> None:
    """In the end the other consumer delivers and clears, as far as it may."""
    catch_up("c")(run)
    run.clear("Rows", "Fresh")
    catch_up("a")(run)


def deliver_and_clear_as_other(run: Run) -> None:
    """Consumer C: a whole watcher that polls and clears."""
    deliver_and_clear(run, consumer="c", refresh=0)


MERGED_NEW_TABLE = Variant(
    "merged-new-table",
    {"D": merge_and_add, "C": deliver_and_clear_as_other},
    (Expectation("a"), Expectation("c")),
    prelude=begin_with_other,
    finale=clear_before_the_end,
    schema_changes=True,
    quiet=(),
    allowed=MOVED,
)


def begin_with_a_part_missing(run: Run) -> None:
    """Only the second part of A is registered in the table, and has delivered all that it has: the
    first one has left it, when it was dropped, and did not run since it is there again."""
    join_for(run, STAY_SECONDS, interval=2.0, clearing=None)
    positions = SpannerPositions(run.database)
    positions.remove("a/1-of-2", ["Rows"])
    run.write(*(("Rows", key, f"{key}.0") for key in range(1, 9)))
    first = [key for key, shard in read_shards(run).items() if shard % 2 == 0]
    run.write(*(("Rows", key, f"{key}.1" if key in first else None) for key in range(1, 9)))
    stood = positions.load_all("a/2-of-2")["Rows"]
    positions.save(Position("a/2-of-2", "Rows", run.now()), stood)


def merge(run: Run) -> None:
    """An operator merges the parts of A."""
    merge_parts(SpannerPositions(run.database), "a")


MERGE_MISSING = Variant(
    "merge-missing",
    {"O": merge, "W": lambda run: run.write(("Rows", 99, "99.0"))},
    (Expectation("a"),),
    prelude=begin_with_a_part_missing,
    finale=catch_up("a"),
)


def begin_to_rename(run: Run) -> None:
    """A has run before; then rows come. A callback takes its time."""
    run_whole(run)
    begin_slowly_shared(run)


def run_twice(run: Run) -> None:
    """An instance of A that is started again, under the name that it knows."""
    run_whole(run)
    run_whole(run)


def rename(run: Run) -> None:
    """An operator gives A the name B. Raises as ``move_consumer``."""
    address = run.world.address.path
    old, new = (End(run.database, Location(name, address, POSITIONS)) for name in ("a", "b"))
    move_consumer(old, new)


def run_renamed(run: Run) -> None:
    """An instance under the new name: its reader is that of A."""
    name = {"tables": ["*"], "start": "earliest", "lease": SHORT_SECONDS, "reader": "a"}
    run.watcher("b", **name).run_once()


def rename_when_frozen(run: Run) -> None:
    """The operator waits until a lease of A that nobody renews has run out, and starts B."""
    run.pass_time(SHORT_SECONDS * 2)
    rename(run)
    run_renamed(run)


def end_renamed(run: Run) -> None:
    """In the end A has its new name, and delivers what is left."""
    rename(run)
    run_renamed(run)


RENAME = Variant(
    "rename",
    {"W": write_and_wait, "A": run_twice, "O": rename_when_frozen},
    (Expectation("a"),),
    prelude=begin_to_rename,
    finale=end_renamed,
    allowed=(*MOVED, ConsumerMovedError),
)

"""Instances that are replaced in the middle of each kind of write and of delivery."""

from __future__ import annotations

from typing import Any

from interleavings.actors import SHORT_SECONDS, Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import (
    ROWS,
    Variant,
    begin_with_rows,
    catch_up,
    deliver_and_clear,
    watch_once,
)
from interleavings.scenarios.schema import alter
from interleavings.scenarios.watching import (
    CUT,
    FILLING,
    MORE,
    TAKEN_OVER,
    begin_slowly,
    instance,
    time_passes,
    write_and_wait,
)


def clear_as_instance(run: Run) -> None:
    """An instance of A that delivers and clears."""
    deliver_and_clear(run, lease=SHORT_SECONDS, standby=True)


CLEARING_TAKEOVER = Variant(
    "clearing-takeover",
    {"A": clear_as_instance, "B": clear_as_instance, "T": time_passes},
    (Expectation("a"),),
    prelude=begin_with_rows,
    finale=catch_up("a"),
    allowed=TAKEN_OVER,
)
CUT_TAKEOVER = Variant(
    "cut-takeover",
    {"A": instance(max_rows=2), "B": instance(max_rows=2), "T": time_passes},
    CUT.expectations,
    statements=CUT.statements,
    watchable=CUT.watchable,
    prelude=CUT.prelude,
    finale=CUT.finale,
    allowed=TAKEN_OVER,
)


def frozen_with(name: str, **options: Any) -> Variant:
    """Two instances whose callbacks take batches or transactions; one is frozen."""
    return Variant(
        name,
        {"W": write_both_and_wait, "A": instance(**options), "B": instance(**options)},
        (Expectation("a"),),
        statements=(ROWS, MORE),
        watchable=("Rows", "More"),
        prelude=begin_with_both,
        finale=catch_up("a", **options),
        allowed=TAKEN_OVER,
    )


def begin_with_both(run: Run) -> None:
    """Two transactions are there, the last one in one table; a callback takes its time."""
    run.slow_callbacks = True
    run.write(("Rows", 1, "1.0"), ("More", 1, "1.0"))
    run.write(("Rows", 2, "2.0"))


def write_both_and_wait(run: Run) -> None:
    """Every row gets another version; then leases that are not renewed expire."""
    run.write(("Rows", 1, "1.1"), ("More", 1, "1.1"), ("Rows", 2, "2.1"))
    run.pass_time(SHORT_SECONDS * 2)


FROZEN_BATCHES = frozen_with("frozen-batches", takes="batches")
FROZEN_TRANSACTIONS = frozen_with("frozen-transactions", takes="transactions", transactions=True)
PAGES: dict[str, Any] = {"takes": "batches"} | FILLING | {"backfill_rows": 1}
FROZEN_PAGES = Variant(
    "frozen-pages",
    {"W": write_and_wait, "A": instance(**PAGES), "B": instance(**PAGES)},
    (Expectation("a"),),
    prelude=begin_slowly,
    finale=catch_up("a", **PAGES),
    allowed=TAKEN_OVER,
)


def begin_with_a_dropped_table(run: Run) -> None:
    """A has a position in a table that was dropped since it ran."""
    watch_once("a")(run)
    alter(run, "DROP INDEX MoreByShardAndTime", "DROP TABLE More")
    run.write(("Rows", 1, "1.0"))


DROPPED_TABLE = Variant(
    "dropped-table",
    {"A": instance(), "B": instance(), "T": time_passes},
    (Expectation("a"),),
    statements=(ROWS, MORE),
    watchable=("Rows", "More"),
    prelude=begin_with_a_dropped_table,
    finale=catch_up("a"),
    schema_changes=True,
    allowed=TAKEN_OVER,
)

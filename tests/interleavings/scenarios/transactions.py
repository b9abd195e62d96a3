"""Transactions over two tables, and rows that are deleted."""

from __future__ import annotations

from typing import Any

from interleavings.actors import SHORT_SECONDS, Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import ROWS, Body, Variant, catch_up, deliver_and_clear
from interleavings.scenarios.spark import query_of
from interleavings.scenarios.watching import TAKEN_OVER, instance, time_passes
from interleavings.scheduler import current_scheduler
from watcher.spanner.timestamps import format_timestamp

OTHERS = "CREATE TABLE Others (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"
TWO: dict[str, Any] = {"statements": (ROWS, OTHERS), "watchable": ("Rows", "Others")}


def begin_with_pairs(run: Run) -> None:
    """A is registered, and two transactions over both tables are there."""
    run.register("a", ["Rows", "Others"])
    for key in (1, 2):
        run.write(("Rows", key, f"{key}.0"), ("Others", key, f"{key}.0"))


def begin_slowly(run: Run) -> None:
    """As ``begin_with_pairs``; a callback takes its time."""
    run.slow_callbacks = True
    for key in (1, 2):
        run.write(("Rows", key, f"{key}.0"), ("Others", key, f"{key}.0"))


def write_pairs(run: Run) -> None:
    """Transactions over both tables; rows go and come again."""
    run.write(("Rows", 1, "1.1"), ("Others", 1, "1.1"))
    run.write(("Rows", 2, None), ("Others", 3, "3.0"))
    run.write(("Rows", 2, "2.2"), ("Others", 2, None))


PAIRS = {"transactions": True, "max_rows": 2}
TRANSACTIONS = Variant(
    "transactions",
    {"W": write_pairs, "A": lambda run: deliver_and_clear(run, **PAIRS)},
    (Expectation("a"),),
    prelude=begin_with_pairs,
    finale=catch_up("a", **PAIRS),
    **TWO,
)
TRANSACTIONS_TAKEOVER = Variant(
    "transactions-takeover",
    {"W": write_pairs, "A": instance(**PAIRS), "B": instance(**PAIRS), "T": time_passes},
    (Expectation("a"),),
    prelude=begin_slowly,
    finale=catch_up("a", **PAIRS),
    allowed=TAKEN_OVER,
    **TWO,
)


def begin_with_backlog(run: Run) -> None:
    """A backlog of single rows, which a query delivers one by one."""
    run.register("q", ["Rows", "Others"])
    run.kept["begin"] = run.now()
    run.write(("Others", 1, "1.0"))
    run.write(("Rows", 1, "1.0"))
    run.write(("Rows", 2, "2.0"))


def delete_some(run: Run) -> None:
    """All that a table has is deleted."""
    run.write(("Others", 1, None))
    run.write(("Rows", 2, "2.1"))


def one_by_one(triggers: int, lives: int) -> Body:
    """A query of small batches that is stopped and started again."""

    def body(run: Run) -> None:
        begin = format_timestamp(run.kept["begin"])
        while run.lives.setdefault("q", 0) < lives:
            run.lives["q"] += 1
            query_of(run, startingTimestamp=begin, maxRowsPerBatch="1").start(triggers)

    return body


def drain_one_by_one(run: Run) -> None:
    """In the end the query delivers what is there."""
    run.lives["q"] = 0
    one_by_one(8, 1)(run)
    query_of(run).deliver()


SPARK_CUT = Variant(
    "spark-cut",
    {"W": delete_some, "Q": one_by_one(3, 2)},
    (Expectation("q", begin_key="begin", exactly=True),),
    prelude=begin_with_backlog,
    finale=drain_one_by_one,
    crashes={"Q": 1},
    **TWO,
)


def start_once(name: str, triggers: int) -> Body:
    """A query of a checkpoint of its own, under the name that both have."""

    def body(run: Run) -> None:
        begin = format_timestamp(run.kept["begin"])
        query_of(run, name=name, startingTimestamp=begin).start(triggers)

    return body


def take_over(run: Run) -> None:
    """The query of the other checkpoint, once the first one holds the name: it comes to stay."""
    current_scheduler().wait(None, lambda: "q" in run.kept and run.kept["q"].registered)
    start_once("r", 2)(run)


def take_over_and_plan(run: Run) -> None:
    """As ``take_over``, and is away again before its first batch."""
    current_scheduler().wait(None, lambda: "q" in run.kept and run.kept["q"].registered)
    begin = format_timestamp(run.kept["begin"])
    query_of(run, name="r", startingTimestamp=begin).plan()


def begin_with_two_queries(run: Run) -> None:
    """A and the queries' consumer are registered; rows come."""
    run.register("a", ["Rows"])
    run.register("q", ["Rows"])
    run.kept["begin"] = run.now()
    run.write(("Rows", 1, "1.0"), ("Rows", 2, "2.0"))


def write_one(run: Run) -> None:
    """A row that is there already, and a new one."""
    run.write(("Rows", 1, "1.1"))
    run.write(("Rows", 3, "3.0"))


def drain_second(run: Run) -> None:
    """In the end the second query delivers what is there."""
    catch_up("a")(run)
    start_once("r", 6)(run)
    query_of(run, name="r").deliver()


SPARK_TAKEOVER = Variant(
    "spark-takeover",
    {
        "W": write_one,
        "A": deliver_and_clear,
        "Q": start_once("q", 2),
        "R": take_over,
        "T": lambda run: run.pass_time(SHORT_SECONDS * 2),
    },
    (
        Expectation("a"),
        Expectation("r", begin_key="begin", exactly=True, name="q", actors=("R",)),
    ),
    prelude=begin_with_two_queries,
    finale=drain_second,
    allowed=TAKEN_OVER,
)


def clear_and_drain_second(run: Run) -> None:
    """In the end the other consumer delivers and clears; then the second query goes on."""
    catch_up("a")(run)
    run.clear("Rows")
    drain_second(run)


SPARK_REPLACED = Variant(
    "spark-replaced",
    {
        "Q": start_once("q", 1),
        "R": take_over_and_plan,
        "T": lambda run: run.pass_time(SHORT_SECONDS * 2),
    },
    (
        Expectation("a"),
        Expectation("r", begin_key="begin", exactly=True, name="q", actors=("R",)),
    ),
    prelude=begin_with_two_queries,
    finale=clear_and_drain_second,
    allowed=TAKEN_OVER,
)

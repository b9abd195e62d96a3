"""Spark queries beside a consumer that delivers and clears."""

from __future__ import annotations

from interleavings.actors import SHORT_SECONDS, Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import (
    Body,
    Variant,
    begin_with_rows,
    catch_up,
    deliver_and_clear,
    write_rows,
)
from interleavings.spark_query import SparkQuery
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import Position, SpannerPositions
from watcher.consumers.positions.values import TABLE as POSITIONS
from watcher.consumers.states import Command
from watcher.model.errors import LeaseHeldError, WatcherError
from watcher.spanner.timestamps import format_timestamp

QUERY = {
    "tables": "*",
    "consumer": "q",
    "leaseSeconds": str(SHORT_SECONDS),
    "idleSeconds": "0",
    "backfillRowsPerBatch": "2",
}


def query_of(run: Run, name: str = "q", **options: str) -> SparkQuery:
    """A query of this schedule, with its checkpoint. All of them are one consumer."""
    if name not in run.kept:
        run.kept[name] = SparkQuery(run, name, QUERY | options)
    spark_query: SparkQuery = run.kept[name]
    return spark_query


def query(triggers: int, lives: int, **options: str) -> Body:
    """A query that is stopped and started again."""

    def body(run: Run) -> None:
        while run.lives.setdefault("q", 0) < lives:
            run.lives["q"] += 1
            query_of(run, **options).start(triggers)

    return body


def drain_query(*consumers: str, **options: str) -> Body:
    """In the end everybody delivers what is there."""

    def finale(run: Run) -> None:
        catch_up(*consumers)(run)
        last = query_of(run, **options)
        last.start(6)
        last.deliver()

    return finale


EARLIEST = Variant(
    "spark-earliest",
    {
        "W": write_rows,
        "A": deliver_and_clear,
        "Q": query(3, 2, startingTimestamp="earliest"),
    },
    (Expectation("a"), Expectation("q", exactly=True)),
    prelude=begin_with_rows,
    finale=drain_query("a", startingTimestamp="earliest"),
    crashes={"Q": 1},
)


def begin_with_earlier(run: Run) -> None:
    """A and the query have delivered; H holds clearing at the beginning."""
    run.register("a", ["Rows"])
    run.register("h", ["Rows"])
    run.kept["begin"] = run.now()
    run.write(("Rows", 1, "1.0"), ("Rows", 2, "2.0"))
    SpannerPositions(run.database).save(Position("q", "Rows", run.now()), None)
    run.write(("Rows", 3, "3.0"))


def go_on(run: Run) -> None:
    """Consumer H catches up: it does not hold clearing any more."""
    run.watcher("h", tables=["*"], start="earliest").run_once()


def earlier(run: Run) -> None:
    """The query starts anew, before its position."""
    query_of(run, startingTimestamp=format_timestamp(run.kept["begin"])).start(2)


def drain_earlier(run: Run) -> None:
    """In the end everybody delivers what is there."""
    drain_query("a", "h", startingTimestamp=format_timestamp(run.kept["begin"]))(run)


EARLIER = Variant(
    "spark-earlier",
    {"W": write_rows, "A": deliver_and_clear, "H": go_on, "Q": earlier},
    (Expectation("a"), Expectation("q", begin_key="begin", exactly=True)),
    prelude=begin_with_earlier,
    finale=drain_earlier,
    crashes={"Q": 1},
)


def stop_query(run: Run) -> None:
    """An operator stops the query for good."""
    consumers = Consumers(run.database, POSITIONS)
    if consumers.status("q") is None:
        return
    consumers.ask("q", Command.STOP)
    run.kept["stopped"] = True


def obey(run: Run) -> None:
    """The query must still be stopped."""
    command = Consumers(run.database, POSITIONS).command("q")
    if run.kept.get("stopped") and command is not Command.STOP:
        run.record.problems.append(f"the query's command is {command}, and nobody resumed it")


STOPPED = Variant(
    "spark-stopped",
    {"Q": query(2, 2, startingTimestamp="earliest"), "O": stop_query},
    (),
    prelude=begin_with_rows,
    finale=obey,
    crashes={"Q": 1},
    allowed=(LeaseHeldError, WatcherError),
)

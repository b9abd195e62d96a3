"""The same over change streams, which need no clearing."""

from __future__ import annotations

from interleavings.actors import SHORT_SECONDS, Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import (
    ROWS,
    Variant,
    catch_up,
    deliver_and_clear,
    watch_once,
    write_rows,
)
from interleavings.scenarios.spark import drain_query, query
from interleavings.scenarios.watching import TAKEN_OVER, begin_slowly, instance, time_passes
from watcher.model.errors import ConfigurationError

STREAM = "CREATE CHANGE STREAM Everything FOR ALL OPTIONS (value_capture_type = 'NEW_ROW')"
STREAMED = {"capture": "change-stream", "start": "latest"}


def start_latest(run: Run) -> None:
    """Consumer B: begins with what is written from now on."""
    run.watcher("b", tables=["*"], lease=SHORT_SECONDS, capture="change-stream").run_once()


def begin(run: Run) -> None:
    """Three rows are there."""
    run.write(*(("Rows", key, f"{key}.0") for key in (1, 2, 3)))


def register_and_write(run: Run) -> None:
    """Consumer A is registered, then three rows come."""
    begin(run)
    run.register("a", ["Rows"])
    run.write(*(("Rows", key, f"{key}.1") for key in (2, 3)))


STREAM_LATEST = Variant(
    "stream-latest",
    {"W": write_rows, "B": start_latest},
    (Expectation("b", from_registration=True),),
    statements=(ROWS, STREAM),
    watchable=(),
    prelude=begin,
    finale=catch_up("b", **STREAMED),
    crashes={"B": 1},
)
FILLING = STREAMED | {"backfill": ["*"], "backfill_rows": 2}
STREAM_TAKEOVER = Variant(
    "stream-takeover",
    {"W": write_rows, "A": instance(**FILLING), "B": instance(**FILLING), "T": time_passes},
    (Expectation("a"),),
    statements=(ROWS, STREAM),
    watchable=(),
    prelude=begin_slowly,
    finale=catch_up("a", **FILLING),
    allowed=TAKEN_OVER,
)


def add_table(run: Run) -> None:
    """A table is made and written to."""
    run.database.update_ddl(
        ["CREATE TABLE Fresh (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"]
    ).result(60)
    run.write(("Fresh", 1, "1.0"), ("Rows", 1, "1.2"))
    run.write(("Fresh", 2, "2.0"))


def follow(run: Run) -> None:
    """Consumer A: watches all tables."""
    run.watcher("a", tables=["*"], refresh=0, interval=0.001, **STREAMED).run()


STREAM_NEW_TABLE = Variant(
    "stream-new-table",
    {"D": add_table, "A": follow},
    (Expectation("a", tables=("Fresh",)),),
    statements=(ROWS, STREAM),
    watchable=(),
    prelude=register_and_write,
    finale=catch_up("a", **STREAMED),
    schema_changes=True,
    quiet=(),
)
PARTS = "CREATE CHANGE STREAM Everything FOR ALL OPTIONS (value_capture_type = 'NEW_VALUES')"
WHOLE = STREAMED | {"stream": {"whole_rows": True}}


def change_columns(run: Run) -> None:
    """A column is added, written to, and dropped, among writes that leave it out; another one
    comes."""
    run.write(("Rows", 1, "1.2"))
    run.database.update_ddl(["ALTER TABLE `Rows` ADD COLUMN Extra STRING(MAX)"]).result(60)
    run.write(("Rows", 2, "2.2"), columns={"Extra": "2"})
    run.write(("Rows", 1, "1.3"))
    run.database.update_ddl(["ALTER TABLE `Rows` DROP COLUMN Extra"]).result(60)
    run.write(("Rows", 3, "3.2"))
    run.database.update_ddl(["ALTER TABLE `Rows` ADD COLUMN Later INT64"]).result(60)
    run.write(("Rows", 1, "1.4"), columns={"Later": 4})


def follow_whole_rows(run: Run) -> None:
    """Consumer A: has the values read that the stream leaves out."""
    run.watcher("a", tables=["*"], refresh=0, interval=0.001, **WHOLE).run()


STREAM_SCHEMA = Variant(
    "stream-schema",
    {"D": change_columns, "A": follow_whole_rows},
    (Expectation("a", tables=("Rows",)),),
    statements=(ROWS, PARTS),
    watchable=(),
    prelude=register_and_write,
    finale=catch_up("a", **WHOLE),
    schema_changes=True,
    quiet=(),
)
SPARK_STREAM = {"startingTimestamp": "earliest", "capture": "change-stream"}
SPARK_STREAM_NEW_TABLE = Variant(
    "spark-stream-new-table",
    {"D": add_table, "Q": query(3, 2, **SPARK_STREAM)},
    (Expectation("q"),),
    statements=(ROWS, STREAM),
    watchable=(),
    prelude=begin,
    finale=drain_query(**SPARK_STREAM),
    crashes={"Q": 1},
    schema_changes=True,
    quiet=(),
)


WITHOUT_CLEARING = f"{STREAM.removesuffix(')')}, allow_txn_exclusion = true)"


def begin_beside_a_poller(run: Run) -> None:
    """A reads the change stream, and C polls; then rows come."""
    watch_once("a", **STREAMED)(run)
    watch_once("c")(run)
    begin(run)


def clear_as_poller(run: Run) -> None:
    """Consumer C: delivers and clears."""
    deliver_and_clear(run, consumer="c")


def go_over_to_polling(run: Run) -> None:
    """Consumer A polls from now on, unless rows that it has not had are out of the index."""
    try:
        watch_once("a", lease=SHORT_SECONDS)(run)
    except ConfigurationError:
        catch_up("a", lease=SHORT_SECONDS, **STREAMED)(run)


def clear_and_end(run: Run) -> None:
    """In the end C delivers and clears once more before A goes on."""
    catch_up("c")(run)
    run.clear("Rows")
    go_over_to_polling(run)


STREAM_TO_POLL = Variant(
    "stream-to-poll",
    {"W": write_rows, "C": clear_as_poller, "A": go_over_to_polling},
    (Expectation("a"), Expectation("c")),
    statements=(ROWS, WITHOUT_CLEARING),
    prelude=begin_beside_a_poller,
    finale=clear_and_end,
    crashes={"A": 1},
)

"""What the columns of results mean, for people: words, units in words, decimals, what matters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.result import Cell

DECIMALS_MAX = 3
NOT_MEASURED = "\N{EN DASH}"


@dataclass(frozen=True, slots=True)
class Column:
    """``unit`` is empty where the label says what is counted. ``decimals`` None: as many as the
    values of a table need, the same for all of them."""

    label: str
    unit: str = ""
    decimals: int | None = None

    @property
    def text(self) -> str:
        """Label and unit, for a line."""
        return f"{self.label} ({self.unit})" if self.unit else self.label


ROWS, PER_SECOND, SECONDS = "rows", "rows per second", "seconds"
MILLISECONDS, MEGABYTES = "milliseconds", "megabytes"

COLUMNS = {
    # What a scenario is about: in this order they are shown, the others are folded.
    "p99_s": Column("p99 latency", SECONDS, 3),
    "kept_up": Column("kept up with"),
    "delivered/s": Column("delivered", PER_SECOND, 0),
    "rows/s": Column("delivered", PER_SECOND, 0),
    "missing": Column("missing", ROWS, 0),
    "p50_s": Column("p50 latency", SECONDS, 3),
    "seconds": Column("time to deliver", SECONDS, 2),
    "offered/s": Column("offered", PER_SECOND, 0),
    "written/s": Column("written", PER_SECOND, 0),
    "cpu_s/100k": Column("CPU time per 100,000 rows", SECONDS, 2),
    "commits/s": Column("commits", "per second", 0),
    "streamed_rows/s": Column("streamed", PER_SECOND, 0),
    "commit_of_5000_s": Column("one commit of 5,000 rows", SECONDS, 3),
    "in_10000_s": Column("a query with 10,000 items in IN", SECONDS, 3),
    "poll_server_ms": Column("server's time for a poll", MILLISECONDS, 2),
    "idle_poll_server_ms": Column("for a poll that finds nothing", MILLISECONDS, 2),
    "commit_p99_ms": Column("p99 of a commit", MILLISECONDS, 2),
    "ready_s": Column("start of an empty server", SECONDS, 2),
    "scanned/row": Column("scanned per delivered row", ROWS, 2),
    "peak_mb": Column("peak memory", MEGABYTES, 1),
    # Everything else.
    "rate/s": Column("offered", PER_SECOND, 0),
    "p90_s": Column("p90 latency", SECONDS, 3),
    "p99.9_s": Column("p99.9 latency", SECONDS, 3),
    "max_s": Column("highest latency", SECONDS, 3),
    "aborted": Column("repeated commits", "", 0),
    "query_ms": Column("server's time for a window", MILLISECONDS, 2),
    "query_cpu_ms": Column("server's CPU time for a window", MILLISECONDS, 2),
    "queries": Column("queries", "", 0),
    "queries_cpu_s": Column("server's CPU time for queries", SECONDS, 3),
    "index_rows": Column("in the index at the end", ROWS, 0),
    "cpu_s": Column("CPU time of the consumer", SECONDS, 2),
    "server_cpu_s": Column("CPU time of the server", SECONDS, 2),
    "superseded": Column("replaced within a window", ROWS, 0),
    "commit_p99_s": Column("p99 of a commit", SECONDS, 3),
    "backlog": Column("backlog at the end", ROWS, 0),
    "rows": Column("rows"),
    "shard_groups": Column("shard groups"),
    "interval_s": Column("poll interval", SECONDS),
    "clear_every_s": Column("time between clearings", SECONDS),
    "trigger_s": Column("trigger", SECONDS),
    "client_rows/s": Column("client's own rows", PER_SECOND, 0),
    "columns_rows/s": Column("Arrow columns", PER_SECOND, 0),
    "times": Column("as fast as the client", "times", 1),
    "commit_p50_ms": Column("p50 of a commit", MILLISECONDS, 2),
    "loaded_rows/s": Column("loaded", PER_SECOND, 0),
    "polled_rows": Column("returned by a poll", ROWS, 0),
    "poll_scanned": Column("scanned by a poll", ROWS, 0),
    "bytes/row": Column("disk space per row", "bytes", 1),
    "ready_again_s": Column("start with data", SECONDS, 2),
    "ours": Column("ours"),
    "java": Column("Java"),
    "debezium": Column("Debezium"),
    "ratio": Column("ours is better", "times", 2),
    # Figures of the comparison with Java, a row each.
    "client CPU s/100k rows": Column("client's CPU time per 100,000 rows", SECONDS, 2),
    "client peak MB": Column("client's peak memory", MEGABYTES, 1),
    "server queries": Column("queries", "", 0),
    "rows scanned": Column("scanned", ROWS, 0),
    "rows scanned/row": Column("scanned per delivered row", ROWS, 2),
    "server CPU s of queries": Column("server's CPU time for queries", SECONDS, 3),
    "written": Column("written", ROWS, 0),
    "delivered": Column("delivered", ROWS, 0),
    "p50 s": Column("p50 latency", SECONDS, 3),
    "p99 s": Column("p99 latency", SECONDS, 3),
    "max s": Column("highest latency", SECONDS, 3),
}
"""By their names in JSON."""

SUFFIXES = {
    "_s": Column("", SECONDS, 3),
    "_ms": Column("", MILLISECONDS, 2),
    "_mb": Column("", MEGABYTES, 1),
    "_rows/s": Column("", PER_SECOND, 0),
    "/s": Column("", "per second", 0),
    "/row": Column("", "per row", 2),
}
RANKS = {name: rank for rank, name in enumerate(COLUMNS)}


def find_column(name: str) -> Column:
    """What a column means; one that is not known is understood by the end of its name."""
    if name in COLUMNS:
        return COLUMNS[name]
    for suffix, column in SUFFIXES.items():
        if name.endswith(suffix):
            label = name.removesuffix(suffix).replace("_", " ")
            return Column(label, column.unit, column.decimals)
    return Column(name.replace("_", " "))


def name_in_words(text: str) -> str:
    """A title or a name, in which words such as ``interval_s`` are columns."""
    words = (find_column(word).label if "_" in word else word for word in text.split(" "))
    return " ".join(words)


def rank_column(name: str) -> int:
    """Lower for what matters more."""
    return RANKS.get(name, len(RANKS))


def count_decimals(values: Sequence[Cell], most: int = DECIMALS_MAX) -> int:
    """The decimals that the most precise of some values needs."""
    texts = [f"{value:.{most}f}" for value in values if isinstance(value, float)]
    return max((len(text.rstrip("0").partition(".")[2]) for text in texts), default=0)


def format_cell(value: Cell, decimals: int) -> str:
    """A value for people, numbers with so many decimals."""
    if value is None:
        return NOT_MEASURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else f"{value:,.{decimals}f}"


def format_column(name: str, values: Sequence[Cell]) -> list[str]:
    """The values of a column, all of them with the same decimals."""
    decimals = find_column(name).decimals
    decimals = count_decimals(values) if decimals is None else decimals
    return [format_cell(value, decimals) for value in values]


def is_number(value: Cell) -> bool:
    """True for what is aligned to the right."""
    return isinstance(value, int | float) and not isinstance(value, bool)

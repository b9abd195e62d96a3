"""The partitions of a change stream as they split and merge, and what Spanner answers of them:
child partitions records in the bytes of its API, of more partitions than a server holds."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from google.cloud.spanner_v1 import PartialResultSet
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from emulator.engine.change_streams.partitions import StreamPartition
from emulator.engine.change_streams.reading import child_record, heartbeat_record
from watcher.model.window import Window
from watcher.spanner.dialects import GOOGLESQL, SqlDialect
from watcher.spanner.results.wire import ResultPart, parse_result_part
from watcher.spanner.sql import Statement

STREAM = "Simulated"


def make_partition(number: int, started: int, parents: tuple[str, ...]) -> StreamPartition:
    """A partition that has not ended; its token is as long as Spanner's."""
    token = f"{number:08}".rjust(140, "T")
    return StreamPartition(number, STREAM, token, 0, 0, started, None, parents)


def churn_partitions(count: int, share: float, window: Window, seed: int) -> list[StreamPartition]:
    """``count`` partitions that are active when a window begins, and their children: a ``share`` of
    ``count`` is how often one splits, or two merge, in turn."""
    choice = random.Random(seed)
    start, end = window.start, window.end
    numbers = itertools.count()
    active = [make_partition(next(numbers), start, ()) for _ in range(count)]
    ended: list[StreamPartition] = []
    changes = round(count * share)
    for turn in range(changes):
        at = start + 1 + (end - start - 1) * (turn + 1) // (changes + 1)
        merges = turn % 2 == 1 and len(active) > 1
        parents = [active.pop(choice.randrange(len(active))) for _ in range(2 if merges else 1)]
        tokens = tuple(parent.token for parent in parents)
        for _ in range(1 if merges else 2):
            active.append(make_partition(next(numbers), at, tokens))
        ended += [replace(parent, ended=at) for parent in parents]
    return active + ended


@dataclass(slots=True)
class SimulatedStream:
    """Answers the queries of a window from prepared bytes, as ``QueryStream`` does: of all that it
    has, ``query`` and ``sql``. ``queries`` counts them."""

    answers: Mapping[str | None, bytes]
    queries: int = 0

    @property
    def sql(self) -> SqlDialect:
        """As ``QueryStream.sql``."""
        return GOOGLESQL

    def query(
        self,
        statement: Statement,
        read_timestamp_micros: int | None,  # noqa: ARG002 (as QueryStream has it)
        with_stats: bool = True,  # noqa: ARG002
    ) -> Iterator[ResultPart]:
        """As ``QueryStream.query``."""
        self.queries += 1
        token = statement.params["token"]
        assert token is None or isinstance(token, str)
        yield parse_result_part(self.answers[token])


@dataclass(frozen=True, slots=True)
class SimulatedQueries:
    """A ``QueryClient`` for captures that only query."""

    stream: SimulatedStream


def simulate(partitions: list[StreamPartition], window: Window) -> SimulatedStream:
    """The answers to all queries of a window."""
    children: dict[str, list[StreamPartition]] = {}
    for partition in partitions:
        for parent in partition.parents:
            children.setdefault(parent, []).append(partition)
    roots = enumerate((each for each in partitions if each.started <= window.start), start=1)
    first = [child_record(number, each, (), window.start + 1) for number, each in roots]
    answers: dict[str | None, bytes] = {None: encode(first)}
    for partition in partitions:
        own = children.get(partition.token, [])
        records = [child_record(n, each, each.parents) for n, each in enumerate(own, start=1)]
        answers[partition.token] = encode(records or [heartbeat_record(window.end)])
    return SimulatedStream(answers)


def encode(records: list[str]) -> bytes:
    """ChangeRecord values as one message of a result."""
    message = PartialResultSet.pb()(
        values=[ParseDict(json.loads(each), Value()) for each in records]
    )
    data: bytes = message.SerializeToString()
    return data

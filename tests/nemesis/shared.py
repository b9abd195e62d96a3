"""A run with a shared consumer: instances join, leave, freeze and die. Each part is judged as a
watcher of its own."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from fixtures.pace import allow
from fixtures.singers import fetch_now
from fixtures.warm_python import WarmProcess
from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from conformance.embedded import restored_address
from conformance.judges.polled_windows import (
    Line,
    deliveries,
    find_disordered,
    find_foreign,
    find_invented,
    find_misnamed,
    find_missing,
    find_repeated,
    find_rewound,
    find_skipped,
    settle_windows,
)
from conformance.truth import History, Row, Truth
from conformance.writers import COLUMNS, WATCHED, Writer
from ddl.migration.apply import read_schema
from nemesis.run import (
    CONSUMER,
    NO_SERVER,
    STOP_SECONDS_MAX,
    TWIN_ENDS,
    WRITERS,
    Patience,
    Report,
    World,
    line_of,
    write_and_strike,
)
from nemesis.surroundings import COMMAND
from spanner_schema.model.schema import Column, Dialect, Table
from spanner_schema.model.steps import CreateTable
from spanner_schema.syntax.render import render_step
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.states import Command
from watcher.spanner.dialects import DIALECTS
from watcher.tables.parts import list_parts

INSTANCES_MAX = 3
DIVIDED = 2
"""What a watcher without parts exits with, where the consumer is shared."""
STRUCK = (signal.SIGKILL, signal.SIGTERM)
ENDS = (0, NO_SERVER, *(-number for number in STRUCK), *(128 + number for number in STRUCK))
"""How an instance may end; one that is asked to stop while it starts has no handler yet."""


class SharedWorld(World):
    """As ``World``, with several instances, which append their lines to one file."""

    def _own_settings(self) -> str:
        self.transactions = False
        self.parts = self.randomness.choice([2, 3, 5])
        return f'start = "earliest"\nparts = {self.parts}'

    def _configure(self, database: Database) -> Path:
        config = super()._configure(database)
        text = config.read_text().replace("standby = true", "")
        text = text.replace("transactions = true", "transactions = false")
        config.write_text(text.replace(f'to = "{self.output}"', 'to = "-"'))
        self.instances: list[WarmProcess] = []
        return config

    def _choose_page_port(self) -> int:
        """Each instance has a page of its own."""
        return 0

    def _watch(self) -> WarmProcess:
        """One line a write: a line of one instance is never within one of another's."""
        command = ["-u", "-c", COMMAND]
        process = WarmProcess(
            [*command, "watch", "--config", str(self.config)],
            stdout=self.output.open("ab"),
            stderr=(self.folder / "watcher.log").open("ab"),
            env=self.around.environment | {"PYTHONUNBUFFERED": "1"},
        )
        self.instances.append(process)
        return process

    def list_names(self) -> list[str]:
        """The parts, as consumers."""
        return [part.name_consumer(CONSUMER) for part in list_parts(self.parts)]

    def await_watcher(self) -> None:
        """Until every part is registered."""
        deadline = time.monotonic() + allow(STOP_SECONDS_MAX)
        while not self.look_for_least():
            self.revive()
            time.sleep(0.05)
            if time.monotonic() > deadline:
                raise AssertionError("the instances do not register")

    def least_position(self, database: Database) -> int:
        """How far every part is; 0 before all are registered."""
        positions = SpannerPositions(database)
        places = [positions.load_all(name) for name in self.list_names()]
        if any(len(each) < len(WATCHED) for each in places):
            return 0
        return min(at for each in places for at in each.values())

    # What the nemesis does.

    def _choose(self) -> WarmProcess:
        return self.randomness.choice(self.instances)

    def kill_watcher(self) -> None:
        self._choose().kill()

    def stop_watcher(self) -> None:
        self._choose().send_signal(signal.SIGTERM)

    def freeze_watcher(self) -> None:
        chosen = self._choose()
        chosen.send_signal(signal.SIGSTOP)
        # Longer than a lease, sometimes: its parts go to others meanwhile.
        time.sleep(self.randomness.choice([0.1, 0.3, 1.5]))
        chosen.send_signal(signal.SIGCONT)

    def _list_blows(self) -> dict[Callable[[], None], int]:
        """The instances write to one standard output, whose lines are whole where nothing fails:
        it has no disk that is full, and no lock. An instance that is refused its port is no watcher
        that another takes over from."""
        blows = super()._list_blows()
        others = (self.start_other, self.fill_disk, self.take_port)
        return {blow: weight for blow, weight in blows.items() if blow not in others}

    def start_twin(self) -> None:
        """The same consumer without its parts, by mistake."""
        config, lines = self.folder / "twin.toml", self.folder / "twin.jsonl"
        text = re.sub(r"parts = \d+", "", self._read_config_without_page())
        config.write_text(text.replace('to = "-"', f'to = "{lines}"'))
        self._end_twin(self._start(config), (*TWIN_ENDS, DIVIDED))
        if lines.exists() and lines.stat().st_size > 0:
            raise AssertionError("a twin without parts has delivered")

    def _ask(self, command: Command) -> None:
        consumers = Consumers(self.database(), "SpannerWatcherPositions")
        try:
            known = {status.consumer for status in consumers.list_all()}
            for name in known & set(self.list_names()):
                consumers.ask(name, command)
        except (GoogleAPICallError, RetryError):
            return

    def revive(self) -> None:
        """Instances that have ended are gone; another one joins now and then."""
        for process in list(self.instances):
            code = process.poll()
            if code is None:
                continue
            self.instances.remove(process)
            if code not in ENDS:
                log = (self.folder / "watcher.log").read_text()
                raise AssertionError(f"an instance ended with {code}:\n{log[-3000:]}")
        wanted = self.randomness.randint(1, INSTANCES_MAX)
        while len(self.instances) < wanted:
            self._watch()
            self.struck["an instance joins"] += 1

    # The end.

    def finish(self) -> None:
        """Every part comes to deliver what there is; then the instances end."""
        self.quiet()
        self._ask(Command.RESUME)
        self.revive()
        now = fetch_now(self.database())
        patience = Patience(allow(STOP_SECONDS_MAX))
        while (least := self.look_for_least()) < now:
            self.revive()
            time.sleep(0.2)
            if patience.is_over(least):
                log = (self.folder / "watcher.log").read_text()
                raise AssertionError(f"the parts do not catch up:\n{log[-3000:]}")
        self._end_instances(signal.SIGTERM)

    def _end_instances(self, number: signal.Signals) -> None:
        for process in self.instances:
            process.send_signal(number)
        for process in self.instances:
            process.wait(allow(STOP_SECONDS_MAX))

    def close(self) -> None:
        """Ends the processes."""
        self._end_instances(signal.SIGKILL)
        self.around.close()
        self.spanner.close()
        self._unmount()

    def find_shards(self, rows: set[Row]) -> dict[Row, int]:
        """The shard of every row that there ever was, as Spanner computes it: of their keys, in
        tables that have nothing else."""
        database = self.database()
        schema = read_schema(database)
        shards: dict[Row, int] = {}
        for table in WATCHED:
            known = schema.table(table)
            assert known is not None
            names, copy = COLUMNS[table][:-1], f"{table}Keys"
            shard = find_shard_column(known)
            columns = (*(column for column in known.columns if column.name in names), shard)
            alone = Table(copy, columns, known.primary_key)
            database.update_ddl([render_step(CreateTable(alone), self.dialect)]).result(60)
            keys = [key for name, key in rows if name == table]
            with database.batch() as batch:
                batch.insert(copy, names, keys)
            with database.snapshot() as snapshot:
                for *key, number in snapshot.read(copy, (*names, shard.name), KeySet(all_=True)):
                    shards[table, tuple(key)] = number
        return shards


def run_shared(
    folder: Path, seed: int, seconds: float, dialect: Dialect = Dialect.GOOGLESQL
) -> Report:
    """A whole run. Raises AssertionError when an instance or the server fails to obey."""
    with restored_address():
        world = SharedWorld(folder, seed, dialect=dialect)
        truth, stop = Truth(), threading.Event()
        sql = DIALECTS[dialect]
        writers = [Writer(n, seed, world.database, truth, stop, sql) for n in range(WRITERS)]
        world.writers = writers
        threads = [threading.Thread(target=writer.run, daemon=True) for writer in writers]
        try:
            write_and_strike(world, truth, stop, threads, seconds)
            failures = [repr(writer.failure) for writer in writers if writer.failure]
            world.finish()
            return judge_parts(world, truth, failures)
        finally:
            stop.set()
            world.close()


def judge_parts(world: SharedWorld, truth: Truth, failures: list[str]) -> Report:
    """The report of the judges: each part has its rows, and windows of its own."""
    lines = [line_of(change) for change in world.changes()]
    history = truth.history()
    shards = world.find_shards(set(history))
    counts = {table: count_shards(world, table) for table in WATCHED}

    def part_of(row: Row) -> int:
        return shards[row] % min(world.parts, counts[row[0]])

    problems = list(failures)
    for part in range(world.parts):
        mine = [line for line in lines if part_of(line.row) == part]
        rows = {row: states for row, states in history.items() if part_of(row) == part}
        problems += [f"part {part + 1}: {each}" for each in judge_part(mine, rows)]
    left = world.left_in_index()
    if left:
        problems.append(f"{left} rows are left in the indexes")
    return Report(
        world.seed, problems, len(truth.commits), len(lines), world.parts, dict(world.struck)
    )


def count_shards(world: SharedWorld, table: str) -> int:
    """How many shards a table has: the last number of the shard's expression."""
    known = read_schema(world.database()).table(table)
    assert known is not None
    return int(re.findall(r"\d+", find_shard_column(known).generated or "")[-1])


def find_shard_column(table: Table) -> Column:
    """The only column that is computed, whatever its name in a dialect."""
    return next(column for column in table.columns if column.generated is not None)


def judge_part(lines: list[Line], history: History) -> Iterator[str]:
    """As for a watcher that has these rows alone. A transaction may have rows in several parts."""
    windows = settle_windows(deliveries(lines), history, WATCHED)
    yield from find_invented(lines, history)
    yield from find_disordered(lines)
    yield from find_misnamed(lines)
    yield from find_repeated(windows)
    yield from find_rewound(windows)
    yield from find_foreign(windows, history, WATCHED)
    yield from find_missing(windows, history, WATCHED)
    yield from find_skipped(windows, history, WATCHED)

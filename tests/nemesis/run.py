"""One run: writers write, the nemesis strikes, the watcher is drained, the judges judge."""

from __future__ import annotations

import json
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from fixtures.dialects import create_in
from fixtures.pace import allow
from fixtures.placements import DDL, PLACEMENTS, add_partitions
from fixtures.server import spawn
from fixtures.singers import make_watchable
from fixtures.small_disk import SmallDisk
from fixtures.warm_python import WARM_PYTHON, WarmProcess
from google.api_core.exceptions import GoogleAPICallError, InvalidArgument, RetryError
from google.cloud.spanner_v1 import KeySet
from google.cloud.spanner_v1.database import Database

from conformance.embedded import EmbeddedSpanner, restored_address
from conformance.judges import streamed_windows as versions
from conformance.judges.polled_windows import Line, deliveries, find_problems
from conformance.truth import Row, Truth
from conformance.writers import (
    ACCOUNTS,
    COLUMNS,
    ENTRIES,
    EVENTS,
    LOG,
    LOST,
    WATCHED,
    Writer,
)
from emulator.ports import find_port
from nemesis.surroundings import COMMAND, Surroundings
from spanner_schema.model.schema import Dialect
from watcher.consumers.clearing import Clearing
from watcher.consumers.leases import Consumers
from watcher.consumers.positions import SpannerPositions
from watcher.consumers.states import Command
from watcher.model.change import ValueCapture
from watcher.spanner.dialects import DIALECTS
from watcher.spanner.timestamps import to_datetime, to_micros
from watcher.tables.discovery import discover_table

Capture: TypeAlias = Literal["poll", "change-stream"]
PartitionMode: TypeAlias = Literal["IMMUTABLE_KEY_RANGE", "MUTABLE_KEY_RANGE"]

CONSUMER = "nemesis"
WRITERS = 3
FINGERPRINTS_MAX = 25
STOP_SECONDS_MAX = 90
PROGRESS_SECONDS_MAX = 60
MOVES = 2
"""So soon after a blow positions have moved so often: one move may be what was under way."""
LOOK_SECONDS = 0.2
PAUSE_SECONDS_MAX = 0.01
SLOW_PAUSE_SECONDS_MAX = 0.5
"""Writers pause up to so long between transactions."""
COMMITS_MIN = 25
CHURN_SECONDS = 0.3
"""So often partitions split, merge or move."""
PAGES = 0.3
"""So many of the runs have a page beside their watcher."""
PAGE = re.compile(r"the page is at http://[^:/\s]+:(\d+)")
REFUSED = 2
"""What the command exits with where its settings cannot be."""
NO_SERVER = 3
"""What the command exits with when nothing answers."""
IN_USE = 6
"""What it exits with where another instance has the consumer's name, or the file."""
TWIN_ENDS = (0, NO_SERVER, IN_USE, -signal.SIGTERM, 128 + signal.SIGTERM)
"""How a twin may end: refused, or asked to, also where it has taken over from a dead instance."""
ASIDE = "CREATE TABLE Aside (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"
"""A table without rows: who watches it writes no lines."""
DISK_BYTES = 64_000_000


@dataclass
class Report:
    """What a run did and what was wrong."""

    seed: int
    problems: list[str]
    commits: int
    lines: int
    fingerprints: int
    struck: dict[str, int] = field(default_factory=dict)


class Patience:
    """How long something may stand still: as long as it moves on, it has more time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._reached = 0
        self._deadline = time.monotonic() + seconds

    def is_over(self, reached: int) -> bool:
        """Whether it has come no further for too long."""
        if reached > self._reached:
            self._reached, self._deadline = reached, time.monotonic() + self._seconds
        return time.monotonic() > self._deadline


class World:
    """A server with its data directory, a database, writers, and a watcher process."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        capture: Capture = "poll",
        mode: PartitionMode = "IMMUTABLE_KEY_RANGE",
        *,
        placed: bool = False,
        dialect: Dialect = Dialect.GOOGLESQL,
    ) -> None:
        self.dialect = dialect
        self.folder = folder
        self.placed = placed
        self.mode = mode
        self.seed = seed
        self.capture = capture
        self.randomness = random.Random(seed)
        self.struck: Counter[str] = Counter()
        self.disk = self._mount()
        self.output = self._place_output(self.disk.path if self.disk is not None else folder)
        churn = allow(CHURN_SECONDS) if capture == "change-stream" else 0.0
        self.spanner = EmbeddedSpanner(
            folder / "data", "nemesis", churn, spawn=spawn, dialect=dialect
        )
        schema = [ACCOUNTS, ENTRIES, EVENTS, LOG, ASIDE]
        if placed:
            add_partitions(self.spanner.instance)
            schema = [*DDL[:2], place(ACCOUNTS), ENTRIES, place(EVENTS), LOG, ASIDE]
        database = self._create(schema)
        self.captured = self.randomness.choice(list(ValueCapture))
        self._prepare(database)
        # A row that is inserted again is in the default placement, and no record links the two.
        self.transactions = self.randomness.choice([True, False]) or placed
        self.around = Surroundings(folder, self.spanner.host, self.randomness, self.struck)
        self.writers: list[Writer] = []
        self.has_page = self.randomness.random() < PAGES
        self.page_port = self._choose_page_port()
        self.config = self._configure(database)
        self.watcher = self._watch()

    def _mount(self) -> SmallDisk | None:
        """A disk for the output, where this process may mount one: it is full now and then."""
        try:
            return SmallDisk(self.folder / "disk", DISK_BYTES)
        except OSError as error:
            self.struck[f"no disk is full, because none can be mounted: {error}"] += 1
            return None

    def _create(self, schema: list[str]) -> Database:
        return create_in(self.dialect, self.spanner.instance, "nemesis", schema)

    def database(self) -> Database:
        return self.spanner.connect()

    def _prepare(self, database: Database) -> None:
        make_watchable(database, "Aside", shards=1)
        if self.capture == "change-stream":
            kind = f"value_capture_type = '{self.captured}', partition_mode = '{self.mode}'"
            watched = ", ".join(WATCHED)
            if self.placed:
                kind += ", per_placement_tvf = true"
                watched = ", ".join(f"{table}(Version)" for table in WATCHED)
            stream = f"CREATE CHANGE STREAM Changes FOR {watched} OPTIONS ({kind})"
            database.update_ddl([stream]).result(60)
            return
        make_watchable(database, *WATCHED, shards=self.randomness.choice([1, 3, 8]))

    def _configure(self, database: Database) -> Path:
        chosen = self.randomness
        config = self.folder / "watch.toml"
        config.write_text(
            f"""
            database = "{database.name}"
            tables = ["Accounts", "Entries", "Events"]
            consumer = "{CONSUMER}"
            {self._own_settings()}
            interval = "{chosen.choice([5, 50])}ms"
            max_rows = {chosen.choice([1, 5, 40, 100_000])}
            shard_groups = {chosen.choice([1, 3])}
            transactions = {str(self.transactions).lower()}
            refresh = "200ms"
            lease = "1s"
            standby = true
            [delivery]
            to = "{self.destination}"
            {self._destination_settings()}
            {self._clear_settings()}
            {self._stream_settings()}
            {self._page_settings()}
            """
        )
        return config

    @property
    def destination(self) -> str:
        """What ``delivery.to`` is."""
        return str(self.output)

    def _place_output(self, base: Path) -> Path:
        return base / "changes.jsonl"

    def _destination_settings(self) -> str:
        return ""

    def _choose_page_port(self) -> int:
        return find_port()

    def _page_settings(self) -> str:
        return f"[page]\nport = {self.page_port}" if self.has_page else ""

    def _read_config_without_page(self) -> str:
        return re.sub(r"\[page\]\s+port = \d+", "", self.config.read_text())

    def _own_settings(self) -> str:
        if self.capture == "change-stream":
            return 'start = "latest"\ncapture = "change-stream"'
        return 'start = "earliest"'

    def _clear_settings(self) -> str:
        if self.capture == "change-stream":
            return ""
        return f'[clearing]\nevery = "{self.randomness.choice([100, 400])}ms"'

    def _stream_settings(self) -> str:
        if not self.placed:
            return ""
        return f'[stream]\nname = "Changes"\nplacements = {json.dumps(PLACEMENTS)}'

    def _watch(self) -> WarmProcess:
        return self._start(self.config)

    def _start(self, config: Path) -> WarmProcess:
        return WarmProcess(
            ["-c", COMMAND, "watch", "--config", str(config)],
            stderr=(self.folder / "watcher.log").open("ab"),
            env=self.around.environment,
        )

    def await_watcher(self) -> None:
        """Until the watcher is registered: what is written from then on comes in many windows."""
        positions = SpannerPositions(self.database())
        deadline = time.monotonic() + allow(STOP_SECONDS_MAX)
        while not has_positions(positions):
            self.revive()
            time.sleep(0.05)
            if time.monotonic() > deadline:
                raise AssertionError("the watcher does not register")

    # What the nemesis does.

    def kill_watcher(self) -> None:
        self.watcher.kill()
        self.watcher.wait()
        self.watcher = self._watch()

    def stop_watcher(self) -> None:
        self.stop_watcher_only()
        self.watcher = self._watch()

    def stop_watcher_only(self) -> None:
        """Nothing runs then."""
        self.watcher.send_signal(signal.SIGTERM)
        self.watcher.wait(allow(STOP_SECONDS_MAX))

    def freeze_watcher(self) -> None:
        self.watcher.send_signal(signal.SIGSTOP)
        time.sleep(self.randomness.uniform(0, 0.3))
        self.watcher.send_signal(signal.SIGCONT)

    def pause_watcher(self) -> None:
        self._ask(Command.PAUSE)
        time.sleep(self.randomness.uniform(0, 0.5))
        self._ask(Command.RESUME)

    def drain_watcher(self) -> None:
        self._ask(Command.DRAIN)

    def _ask(self, command: Command) -> None:
        consumers = Consumers(self.database(), "SpannerWatcherPositions")
        try:
            if consumers.status(CONSUMER) is not None:
                consumers.ask(CONSUMER, command)
        except (GoogleAPICallError, RetryError):
            return

    def restart_server(self) -> None:
        self.spanner.restart()

    def trouble(self) -> None:
        self.spanner.trouble(self.randomness, self.seed)

    def quiet(self) -> None:
        self.spanner.quiet()

    def change_schema(self) -> None:
        self.spanner.change_schema()

    def start_twin(self) -> None:
        """The same command a second time, by mistake."""
        config = self.folder / "twin.toml"
        config.write_text(self._read_config_without_page().replace("standby = true", ""))
        self._end_twin(self._start(config), TWIN_ENDS)

    def start_other(self) -> None:
        """Another consumer with the same file, by mistake."""
        config = self.folder / "other.toml"
        config.write_text(self._configure_other())
        self._end_twin(self._start(config), TWIN_ENDS)

    def _configure_other(self) -> str:
        return f"""
            database = "{self.database().name}"
            tables = ["Aside"]
            consumer = "other"
            [delivery]
            to = "{self.destination}"
            """

    def _end_twin(self, twin: WarmProcess, ends: Collection[int]) -> None:
        """A twin that is not refused is stopped soon."""
        try:
            code = twin.wait(self.randomness.uniform(0, 1.5))
        except subprocess.TimeoutExpired:
            twin.send_signal(signal.SIGTERM)
            code = twin.wait(allow(STOP_SECONDS_MAX))
        if code == IN_USE:
            self.struck["a twin was refused"] += 1
        if code not in ends:
            log = (self.folder / "watcher.log").read_text()
            raise AssertionError(f"a twin ended with {code}:\n{log[-3000:]}")

    def fill_disk(self) -> None:
        """The disk of the output is full for a moment."""
        if self.disk is None:
            return
        self.disk.fill(self.randomness.choice([0, 0, 5_000]))
        time.sleep(self.randomness.uniform(0, 0.4))
        self.disk.free()

    def set_clock(self) -> None:
        """The clock of the watcher's machine is set, by minutes."""
        self.around.set_clock()
        self.await_progress("the clock was set")

    def kill_connections(self) -> None:
        """Connections are dead without a word."""
        self.around.kill_connections()
        self.await_progress("its connections were dead")

    def crowd_page(self) -> None:
        """Slow clients of the page."""
        if self.around.crowd_page(self.page_port or find_page_port(self.log)):
            self.await_progress("its page was crowded")

    def take_port(self) -> None:
        """The port of the page is another's: a watcher says so, ends and gives back its name."""
        self.stop_watcher_only()
        with socket.create_server(("127.0.0.1", 0)) as taken:
            config = self.folder / "port.toml"
            text = self.config.read_text().replace("[page]\nport = 0", "")
            config.write_text(f"{text}\n[page]\nport = {taken.getsockname()[1]}\n")
            code = self._start(config).wait(allow(STOP_SECONDS_MAX))
        if code not in (REFUSED, NO_SERVER):
            raise AssertionError(
                f"without its port a watcher ended with {code}:\n{self.log[-3000:]}"
            )
        self.watcher = self._watch()
        self.await_progress("its port was taken")

    @property
    def log(self) -> str:
        """What the watchers have said."""
        return (self.folder / "watcher.log").read_text(errors="replace")

    def await_progress(self, what: str) -> None:
        """Until the positions have moved, and moved again: nothing that a watcher has around it
        stops it. One that an operator has stopped is started again. Little is written meanwhile:
        else much would be left to be delivered in the end."""
        for writer in self.writers:
            writer.pause_seconds_max = SLOW_PAUSE_SECONDS_MAX
        self._await_moves(what)
        for writer in self.writers:
            writer.pause_seconds_max = PAUSE_SECONDS_MAX

    def _await_moves(self, what: str) -> None:
        deadline = time.monotonic() + allow(PROGRESS_SECONDS_MAX)
        database, reached, moves = self.database(), 0, -1
        while moves < MOVES:
            self.revive()
            time.sleep(LOOK_SECONDS)
            try:
                least = self.least_position(database)
            except (GoogleAPICallError, RetryError):
                database = self.database()  # its session may be lost
                continue
            finally:
                if time.monotonic() > deadline:
                    self._report_standstill(what)
            moves += least > reached
            reached = max(least, reached)

    def _report_standstill(self, what: str) -> None:
        self.watcher.send_signal(signal.SIGABRT)
        self.watcher.wait()
        seconds = allow(PROGRESS_SECONDS_MAX)
        raise AssertionError(f"stands still for {seconds:.0f} s after {what}:\n{self.log[-6000:]}")

    def least_position(self, database: Database) -> int:
        """Everything at or below it is delivered; 0 before all tables are registered."""
        places = SpannerPositions(database).load_all(CONSUMER)
        return min(places.values()) if len(places) == len(WATCHED) else 0

    def look_for_least(self) -> int:
        """As ``least_position``; 0 where the server does not say it now."""
        try:
            return self.least_position(self.database())
        except (GoogleAPICallError, RetryError):
            return 0

    def _list_blows(self) -> dict[Callable[[], None], int]:
        return {
            self.kill_watcher: 4,
            self.stop_watcher: 1,
            self.freeze_watcher: 2,
            self.pause_watcher: 1,
            self.drain_watcher: 1,
            self.restart_server: 2,
            self.trouble: 4,
            self.quiet: 2,
            self.change_schema: 2,
            self.start_twin: 1,
            self.start_other: 1,
            self.fill_disk: 2,
            self.set_clock: 2,
            self.kill_connections: 2,
            self.crowd_page: 2 if self.has_page else 0,
            self.take_port: 1,
        }

    def strike(self) -> None:
        """One random blow; a watcher that has ended is started again."""
        blows = self._list_blows()
        blow = self.randomness.choices(list(blows), weights=list(blows.values()))[0]
        blow()
        self.struck[blow.__name__] += 1
        self.revive()

    def revive(self) -> None:
        """A watcher that was drained has ended, and one that found no server at its start, too, or
        whose name a twin has taken when its lease had run out; one that failed for good is a
        finding."""
        code = self.watcher.poll()
        if code is not None:
            if code not in (0, NO_SERVER) and not self._is_taken_over():
                log = (self.folder / "watcher.log").read_text()
                raise AssertionError(f"the watcher ended with {code}:\n{log[-3000:]}")
            self.watcher = self._watch()

    def _is_taken_over(self) -> bool:
        """Whether a twin may have taken the name of the watcher, which has ended."""
        return self.watcher.returncode == IN_USE and self.struck["start_twin"] > 0

    # The end.

    def finish(self) -> None:
        """Stops the faults, lets the watcher deliver everything, and ends it."""
        self.quiet()
        self.revive()
        self.change_mind()
        patience = Patience(allow(STOP_SECONDS_MAX))
        while self.watcher.poll() is None or self._is_taken_over():
            self.revive()
            self._ask(Command.DRAIN)
            time.sleep(LOOK_SECONDS)
            if patience.is_over(self.look_for_least()):
                self.watcher.send_signal(signal.SIGABRT)
                self.watcher.wait()
                log = (self.folder / "watcher.log").read_text()
                raise AssertionError(f"the watcher does not drain:\n{log[-3000:]}")
        self.revive_if_failed()
        self._ask(Command.RESUME)  # the watcher may have ended before it was paused
        again = self._watch_once()
        if again.returncode != 0:
            raise AssertionError(again.stderr)

    def change_mind(self) -> None:
        """Asks to drain, but then to pause; whoever asks to drain again has to get it."""
        for command in (Command.DRAIN, Command.PAUSE):
            self._ask(command)
            time.sleep(self.randomness.uniform(0, 0.3))

    def revive_if_failed(self) -> None:
        if self.watcher.returncode not in (0, NO_SERVER):
            log = (self.folder / "watcher.log").read_text()
            raise AssertionError(
                f"the watcher ended with {self.watcher.returncode}:\n{log[-3000:]}"
            )

    def _watch_once(self) -> subprocess.CompletedProcess[str]:
        command = [*WARM_PYTHON, "-c", "from watcher.cli import main; main()"]
        command += ["watch", "--config", str(self.config), "--once"]
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=allow(STOP_SECONDS_MAX)
        )

    def changes(self) -> list[dict[str, Any]]:
        """The output."""
        return [json.loads(text) for text in self.output.read_text().splitlines()]

    def read_tables(self, at: int) -> dict[Row, str]:
        """The tables as Spanner has them at a timestamp."""
        versions: dict[Row, str] = {}
        database = self.database()
        for table, columns in COLUMNS.items():
            with database.snapshot(read_timestamp=to_datetime(at)) as snapshot:
                for row in snapshot.read(table, columns, KeySet(all_=True)):
                    versions[table, tuple(row[:-1])] = row[-1]
        return versions

    def left_in_index(self) -> int:
        """Rows in the indexes after a last clearing."""
        database = self.database()
        positions = SpannerPositions(database)
        left = 0
        for table in WATCHED:
            clearing = Clearing(database, discover_table(database, table), positions)
            clearing.clear()
            left += clearing.count().rows
        return left

    def close(self) -> None:
        """Ends the processes."""
        if self.watcher.poll() is None:
            self.watcher.kill()
            self.watcher.wait()
        self.around.close()
        self.spanner.close()
        self._unmount()

    def _unmount(self) -> None:
        """The output is kept."""
        if self.disk is not None:
            if self.output.exists():
                shutil.copy(self.output, self.folder)
            self.disk.close()


def place(table: str) -> str:
    """A CREATE TABLE with a placement key, of which the writers know nothing."""
    key = "Place STRING(MAX) NOT NULL DEFAULT ('default') PLACEMENT KEY"
    return table.replace("Version STRING(MAX)", f"Version STRING(MAX), {key}")


class Mover:
    """Moves accounts with their entries from placement to placement, and writes nothing else."""

    def __init__(self, world: World, stop: threading.Event) -> None:
        self.moved = 0
        self._world = world
        self._stop = stop
        self._randomness = random.Random(f"moves {world.seed}")

    def run(self) -> None:
        """Moves until ``stop`` is set."""
        choice = self._randomness
        while not self._stop.wait(choice.uniform(0, 0.05)):
            row = (choice.randrange(12), choice.choice(PLACEMENTS))
            try:
                with self._world.database().batch() as batch:
                    batch.update("Accounts", ["Id", "Place"], [row])
            except LOST:
                continue
            self.moved += 1


def find_page_port(log: str) -> int:
    """Where the latest watcher has said that its page is; 0 where none has."""
    ports = PAGE.findall(log)
    return int(ports[-1]) if ports else 0


def has_positions(positions: SpannerPositions) -> bool:
    """Whether the watcher has saved its positions; it creates their table itself."""
    try:
        return len(positions.load_all(CONSUMER)) == len(WATCHED)
    except InvalidArgument:
        return False


def line_of(change: dict[str, Any]) -> Line:
    """A line of the output of polling, as its judges read it."""
    return Line(
        id=change["id"],
        table=change["table"],
        key=tuple(change["key"].values()),
        at=micros(change["commit_timestamp"]),
        version=change["values"]["Version"],
        start=micros(change["window"]["start"]),
        end=micros(change["window"]["end"]),
    )


def mod_of(change: dict[str, Any]) -> versions.Line:
    """A line of the output of a change stream, as its judges read it."""
    return versions.Line(
        id=change["id"],
        table=change["table"],
        key=tuple(change["key"].values()),
        at=micros(change["commit_timestamp"]),
        operation=change["operation"],
        old=(change["old_values"] or {}).get("Version"),
        new=change["values"].get("Version"),
        transaction=change["transaction"]["id"],
        start=micros(change["window"]["start"]),
        end=micros(change["window"]["end"]),
    )


def micros(text: str) -> int:
    return to_micros(datetime.fromisoformat(text))


def run(
    folder: Path,
    seed: int,
    seconds: float,
    *,
    strikes: bool = True,
    capture: Capture = "poll",
    mode: PartitionMode = "IMMUTABLE_KEY_RANGE",
    placed: bool = False,
    dialect: Dialect = Dialect.GOOGLESQL,
) -> Report:
    """A whole run. Raises AssertionError when the watcher or the server fails to obey."""
    with restored_address():
        return run_in(folder, seed, seconds, strikes, capture, mode, placed, dialect)


def run_in(
    folder: Path,
    seed: int,
    seconds: float,
    strikes: bool,
    capture: Capture,
    mode: PartitionMode,
    placed: bool,
    dialect: Dialect,
) -> Report:
    """As ``run``; the environment names the server of the run from then on."""
    world = World(folder, seed, capture, mode, placed=placed, dialect=dialect)
    truth, stop = Truth(), threading.Event()
    sql = DIALECTS[dialect]
    writers = [Writer(n, seed, world.database, truth, stop, sql) for n in range(WRITERS)]
    world.writers = writers
    threads = [threading.Thread(target=writer.run, daemon=True) for writer in writers]
    mover = Mover(world, stop)
    threads += [threading.Thread(target=mover.run, daemon=True)] if placed else []
    try:
        write_and_strike(world, truth, stop, threads, seconds, strikes)
        failures = [repr(writer.failure) for writer in writers if writer.failure]
        world.finish()
        world.struck["moved a row"] += mover.moved
        judge = judge_stream if capture == "change-stream" else judge_polling
        return judge(world, truth, failures, None if strikes else 0)
    finally:
        stop.set()
        world.close()


def write_and_strike(
    world: World,
    truth: Truth,
    stop: threading.Event,
    threads: Sequence[threading.Thread],
    seconds: float,
    strikes: bool = True,
) -> None:
    """Runs the writers' threads while the nemesis strikes; they have ended, and faults too."""
    world.await_watcher()
    for thread in threads:
        thread.start()
    ends = time.monotonic() + seconds
    while time.monotonic() < ends or slow(truth, ends):
        time.sleep(world.randomness.uniform(0, 0.6))
        if strikes:
            world.strike()
    world.quiet()
    stop.set()
    for thread in threads:
        thread.join(allow(STOP_SECONDS_MAX))


def slow(truth: Truth, ends: float) -> bool:
    """Whether a busy machine has written so little that the run should continue for a while."""
    return len(truth.commits) < COMMITS_MIN and time.monotonic() < ends + allow(STOP_SECONDS_MAX)


def judge_polling(world: World, truth: Truth, failures: list[str], crashes: int | None) -> Report:
    """The report of the judges of polling."""
    lines = [line_of(change) for change in world.changes()]
    ends = sorted({window.end for window in deliveries(lines) if window.complete})
    chosen = world.randomness.sample(ends, min(len(ends), FINGERPRINTS_MAX))
    problems = failures + find_problems(
        lines,
        truth,
        WATCHED,
        transactions=world.transactions,
        snapshots={end: world.read_tables(end) for end in chosen},
        crashes=crashes,
    )
    left = world.left_in_index()
    if left:
        problems.append(f"{left} rows are left in the indexes")
    return Report(
        world.seed, problems, len(truth.commits), len(lines), len(chosen), dict(world.struck)
    )


def judge_stream(world: World, truth: Truth, failures: list[str], crashes: int | None) -> Report:
    """The report of the judges of a change stream."""
    lines = [mod_of(change) for change in world.changes()]
    ends = sorted({window.end for window in versions.deliveries(lines) if window.whole})
    chosen = world.randomness.sample(ends, min(len(ends), FINGERPRINTS_MAX))
    problems = failures + versions.find_problems(
        lines,
        truth,
        WATCHED,
        old_values=world.captured.keeps_old,
        transactions=world.transactions,
        snapshots={end: world.read_tables(end) for end in chosen},
        crashes=crashes,
    )
    return Report(
        world.seed, problems, len(truth.commits), len(lines), len(chosen), dict(world.struck)
    )

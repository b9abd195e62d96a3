"""One run: writers write, the nemesis strikes, the command settles, the judges judge."""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from google.cloud.spanner_v1 import COMMIT_TIMESTAMP
from google.cloud.spanner_v1.database import Database

from conformance.changes import STARTING, Blow
from conformance.churn import Churn, Churner, ChurnReport, choose_churn, report_churn
from conformance.embedded import EmbeddedSpanner, restored_address
from conformance.foreign import ForeignSpanner
from conformance.judges.arrivals import Latency, measure_latency, undisturbed_lines
from conformance.judges.each_change import newest_versions
from conformance.judges.repeats import explain_repeats
from conformance.judges.streamed_windows import mods_of
from conformance.nemesis import Nemesis
from conformance.output import RawLine, parse_output, write_lines
from conformance.presets import PRESETS, write_files
from conformance.recording import (
    ChurnEvent,
    Ending,
    Finding,
    Recording,
    RunFailedError,
    first_deliveries,
)
from conformance.settings import STREAM, Settings, split_command
from conformance.spanner import RunSpanner
from conformance.system import System, name_variables
from conformance.truth import Commit, Row, Truth, Write
from conformance.verdict import judge
from conformance.writers import ACCOUNTS, ENTRIES, EVENTS, LOG, WATCHED, Writers
from ddl.migration.apply import apply_plan, read_schema
from ddl.migration.plan import make_plan
from spanner_schema.model.options import WatchOptions
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.timestamps import format_timestamp, to_micros

DATABASE = "conformance"
COMMITS_MIN = 25
BUSY_SECONDS_MAX = 90.0
"""So much longer a busy machine may take to commit the fewest transactions of a run."""
JOIN_SECONDS_MAX = 90.0
LOOK_SECONDS = 0.1
SETTLES_MAX = 10
"""A command that only repeats itself is waited for so many times as long as a silent one."""
QUIET_SECONDS = 1.0
"""After everything has come, what should not come may still come for so long."""


@dataclass(slots=True)
class Report:
    """What a run did, and what was wrong. ``explained``: the repeats that a blow explains, by the
    kind of the blow; ``unexplained``: the others."""

    seed: int
    findings: list[Finding]
    commits: int
    changes: int
    lines: int
    repeats: int
    unexplained: int
    starts: int
    ended: int
    blows: dict[str, int] = field(default_factory=dict)
    explained: dict[str, int] = field(default_factory=dict)
    latency: Latency | None = None
    undisturbed: Latency | None = None
    churn: ChurnReport | None = None


def run(settings: Settings, folder: Path) -> Report:
    """A whole run, in a new folder, which keeps all of it. Raises ConfigurationError,
    RuntimeError where the server does not start, and RunFailedError."""
    settings = settle_preset(settings)
    settings.check()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps(asdict(settings), indent=2))
    with restored_address():
        recording, raw = record(settings, folder)
    report = assess(settings, recording)
    keep_recording(folder, recording, raw, report)
    return report


def settle_preset(settings: Settings) -> Settings:
    """The settings as the preset completes them for the seed."""
    preset = PRESETS.get(settings.preset)
    return preset.settle(settings) if preset is not None else settings


def record(settings: Settings, folder: Path) -> tuple[Recording, list[RawLine]]:
    """Does everything but judging."""
    state = folder / "state"
    state.mkdir()
    churn = choose_churn(settings)
    spanner = open_spanner(settings, folder, churn)
    truth = Truth()
    writers = Writers(settings.seed, spanner.connect, truth)
    churner = Churner(churn, settings, spanner, writers) if churn is not None else None
    system: System | None = None
    try:
        prepare(settings, spanner)
        began = begin(spanner.connect())
        system = make_system(settings, spanner, folder, state, began)
        system.start()
        nemesis = Nemesis(settings, system, spanner)
        writers.start_all()
        if churner is not None:
            churner.start()
        nemesis.await_line()
        nemesis.strike_for(settings.seconds)
        await_commits(truth)
        nemesis.end()
        if churner is not None:
            churner.stop()
        writers.stop()
        join_writers(writers)
        spanner.end_churn()
        settle(settings, system, nemesis, truth, began)
        nemesis.hung += not system.stop(settings.stop_seconds)
    finally:
        writers.stop()
        if system is not None:
            system.close()
        spanner.close()
    raw = system.output.after(0)
    lines, unreadable = parse_output(raw, settings.format)
    recording = Recording(
        began=began,
        truth=truth,
        lines=lines,
        blows=tuple(nemesis.blows),
        unreadable=unreadable,
        endings=tuple(nemesis.endings),
        hung=nemesis.hung,
        churn=tuple(churner.events) if churner is not None else (),
    )
    return recording, raw


def open_spanner(settings: Settings, folder: Path, churn: Churn | None) -> RunSpanner:
    """A server of the run's own, or the one in which the settings name a database."""
    if settings.database:
        return ForeignSpanner(DatabaseAddress.parse(settings.database))
    seconds = churn.partition_seconds if churn is not None else 0.0
    return EmbeddedSpanner(folder / "spanner", DATABASE, seconds, seed=settings.seed)


def begin(database: Database) -> int:
    """A commit timestamp from before the first write that is judged, by the clock of Spanner."""
    with database.batch() as batch:
        batch.insert("Log", ("Name", "At"), [("begin", COMMIT_TIMESTAMP)])
    return to_micros(batch.committed)


def prepare(settings: Settings, spanner: RunSpanner) -> None:
    """The database, with what the system needs to see its changes."""
    choice = random.Random(f"schema {settings.seed}")
    database = spanner.create([ACCOUNTS, ENTRIES, EVENTS, LOG])
    if settings.prepare == "poll":
        options = WatchOptions.model_validate({"shards": choice.choice([1, 3, 8])})
        apply_plan(database, make_plan(read_schema(database), list(WATCHED), options))
        return
    capture = choice.choice(settings.value_captures)
    statement = (
        f"CREATE CHANGE STREAM {STREAM} FOR {', '.join(WATCHED)}"
        f" OPTIONS (value_capture_type = '{capture}')"
    )
    database.update_ddl([statement]).result(JOIN_SECONDS_MAX)


def make_system(
    settings: Settings, spanner: RunSpanner, folder: Path, state: Path, began: int
) -> System:
    """The command, with its placeholders and variables."""
    address = spanner.address
    values = {
        "address": str(address),
        "database": address.path,
        "project": address.project,
        "instance": address.instance,
        "name": address.database,
        "tables": ",".join(WATCHED),
        "stream": STREAM,
        "start": format_timestamp(began),
        "state": str(state),
    }
    write_files(settings.preset, state, values, settings)
    command = split_command(settings.command, values | {"python": sys.executable})
    return System(command, name_variables(values), state, folder / "command.log")


def join_writers(writers: Writers) -> None:
    """Waits for their last transactions. Raises RunFailedError."""
    for writer, alive in writers.join(JOIN_SECONDS_MAX):
        if writer.failure is not None:
            raise RunFailedError(f"a writer failed: {writer.failure!r}") from writer.failure
        if alive:
            raise RunFailedError("a writer does not end: its last commit may be unknown")


def await_commits(truth: Truth) -> None:
    """Until the run has the fewest transactions that are worth judging."""
    ends = time.monotonic() + BUSY_SECONDS_MAX
    while len(truth.commits) < COMMITS_MIN and time.monotonic() < ends:
        time.sleep(LOOK_SECONDS)


def settle(settings: Settings, system: System, nemesis: Nemesis, truth: Truth, began: int) -> None:
    """Until everything that is expected has come, or nothing has come for some time; what was just
    started first has the time of a start, and may first repeat itself."""
    history = truth.history()
    expected = (
        set(mods_of(history, WATCHED, began))
        if settings.promises.every_version
        else newest_versions(history)
    )
    read = 0
    latest = began_to_settle = time.monotonic()
    longest = SETTLES_MAX * max(settings.settle_seconds, settings.start_seconds)
    while expected and time.monotonic() < min(
        latest + patience(settings, nemesis), began_to_settle + longest
    ):
        raw = system.output.after(read)
        read += len(raw)
        lines, _ = parse_output(raw, settings.format)
        if raw:
            latest = time.monotonic()
        expected -= {(line.row, line.at) for line in lines}
        nemesis.revive()
        time.sleep(LOOK_SECONDS)
    time.sleep(QUIET_SECONDS)


def patience(settings: Settings, nemesis: Nemesis) -> float:
    """How long nothing may come."""
    if nemesis.delivering:
        return settings.settle_seconds
    return max(settings.start_seconds, settings.settle_seconds)


def assess(settings: Settings, recording: Recording) -> Report:
    """The judges' report."""
    history = recording.truth.history()
    repeats = explain_repeats(recording, settings.promises)
    causes = Counter(repeat.cause for repeat in repeats)
    unexplained = causes.pop("", 0)
    return Report(
        seed=settings.seed,
        findings=judge(recording, settings.promises),
        commits=len(recording.truth.commits),
        changes=len(mods_of(history, WATCHED, recording.began)),
        lines=len(recording.lines),
        repeats=len(repeats),
        unexplained=unexplained,
        starts=1 + sum(blow.kind in STARTING for blow in recording.blows),
        ended=len(recording.endings),
        blows=dict(Counter(blow.kind for blow in recording.blows)),
        explained=dict(causes),
        latency=measure_latency(first_deliveries(recording.lines)),
        undisturbed=measure_latency(undisturbed_lines(recording)),
        churn=report_churn(settings, recording.churn),
    )


# What a run keeps.


def keep_recording(
    folder: Path, recording: Recording, raw: Sequence[RawLine], report: Report
) -> None:
    """Everything that the judges read, as files."""
    write_lines(folder / "lines.jsonl", [asdict(line) for line in raw])
    write_lines(folder / "commits.jsonl", [asdict(commit) for commit in recording.truth.commits])
    write_lines(folder / "blows.jsonl", [asdict(blow) for blow in recording.blows])
    rest = {
        "began": recording.began,
        "hung": recording.hung,
        "endings": [asdict(ending) for ending in recording.endings],
        "churn": [asdict(event) for event in recording.churn],
    }
    (folder / "run.json").write_text(json.dumps(rest, indent=2))
    (folder / "report.json").write_text(json.dumps(asdict(report), indent=2, ensure_ascii=False))


def read_recording(folder: Path) -> tuple[Settings, Recording]:
    """What ``keep_recording`` has kept."""
    settings = Settings.from_json(json.loads((folder / "settings.json").read_text()))
    rest = json.loads((folder / "run.json").read_text())
    raw = [RawLine(**line) for line in read_lines(folder / "lines.jsonl")]
    lines, unreadable = parse_output(raw, settings.format)
    recording = Recording(
        began=rest["began"],
        truth=Truth([read_commit(commit) for commit in read_lines(folder / "commits.jsonl")]),
        lines=lines,
        blows=tuple(Blow(**blow) for blow in read_lines(folder / "blows.jsonl")),
        unreadable=unreadable,
        endings=tuple(Ending(**ending) for ending in rest["endings"]),
        hung=rest["hung"],
        churn=tuple(ChurnEvent(**event) for event in rest.get("churn", ())),
    )
    return settings, recording


def read_commit(values: dict[str, Any]) -> Commit:
    """A commit of a file."""
    return Commit(
        values["at"],
        tuple(Write(read_row(write["row"]), write["version"]) for write in values["writes"]),
    )


def read_row(values: list[Any]) -> Row:
    """A row of a file."""
    table, key = values
    return table, tuple(key)


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A file of JSON lines."""
    return [json.loads(line) for line in path.read_text().splitlines()]

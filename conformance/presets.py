"""The systems that the kit knows by name: their commands, promises and files."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.recording import Promises
from conformance.settings import VALUE_CAPTURES, Settings

WATCH = "{python} -c 'from watcher.cli import main; main()' watch --config {state}/watch.toml"
SHARED = """\
database = "{address}"
tables = ["Accounts", "Entries", "Events"]
consumer = "conformance"
interval = "{interval}"
max_rows = {max_rows}
refresh = "200ms"
lease = "5s"
standby = true
"""
POLL = (
    SHARED
    + """\
start = "earliest"
shard_groups = {shard_groups}
[clearing]
every = "{clear}"
"""
)
STREAM = (
    SHARED
    + """\
start = "{start}"
capture = "change-stream"
transactions = {transactions}
[stream]
name = "Changes"
"""
)
PUSH = (
    SHARED
    + """\
start = "{start}"
capture = "change-stream"
[stream]
name = "Changes"
push = true
"""
)


@dataclass(frozen=True, slots=True)
class Preset:
    """A system. ``settle`` completes the settings of a seed; ``file`` is the template of a
    watcher's file, filled with choices of the seed and with placeholders. ``check`` is a command
    that fails where the system cannot run, and says why."""

    settings: Settings
    description: str
    file: str = ""
    settle: Callable[[Settings], Settings] = lambda settings: settings
    check: str = ""


def choose_transactions(settings: Settings) -> Settings:
    """Every second seed delivers transactions whole."""
    promises = replace(settings.promises, transactions=settings.seed % 2 == 0)
    return replace(settings, promises=promises)


WATCHER = Settings(WATCH, settle_seconds=60.0, stop_seconds=90.0)
"""After SIGTERM a watcher gives the window in progress 60 seconds."""
PRESETS = {
    "watch-poll": Preset(
        replace(WATCHER, prepare="poll", promises=Promises(every_version=False)),
        "this project's watcher, polling, with clearing",
        POLL,
    ),
    "watch-change-stream": Preset(
        replace(WATCHER, value_captures=VALUE_CAPTURES),
        "this project's watcher, a change stream in windows; even seeds keep transactions whole",
        STREAM,
        choose_transactions,
    ),
    "watch-push": Preset(
        replace(WATCHER, value_captures=VALUE_CAPTURES, promises=Promises(windows=False)),
        "this project's watcher, open queries of a change stream",
        PUSH,
    ),
    "debezium": Preset(
        Settings(
            "{python} -m benchmarks.debezium.command --database {database} --stream {stream}"
            " --start {start} --state {state} --tables {tables}",
            format="debezium",
            # Its start takes half a minute, and so does a blow's consequence.
            seconds=60.0,
            settle_seconds=90.0,
            stop_seconds=60.0,
            start_seconds=180.0,
            pause_seconds=10.0,
            promises=Promises(stages=2, late_seconds_max=30.0),
        ),
        "Debezium's connector with Kafka Connect and a broker; needs the extras bench and kafka,"
        " a JDK and Maven",
        check="{python} -m benchmarks.debezium.command --check",
    ),
}


def write_files(name: str, state: Path, values: dict[str, str], settings: Settings) -> None:
    """The files of a preset, drawn by the seed of the run."""
    template = PRESETS[name].file if name in PRESETS else ""
    if not template:
        return
    choice = random.Random(f"preset {settings.seed}")
    text = template.format(
        address=values["address"],
        start=values["start"],
        interval=choice.choice(["5ms", "50ms"]),
        max_rows=choice.choice([20, 200, 100_000]),
        shard_groups=choice.choice([1, 3]),
        clear=choice.choice(["100ms", "400ms"]),
        transactions=str(settings.promises.transactions).lower(),
    )
    (state / "watch.toml").write_text(text)

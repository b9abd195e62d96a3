"""``make soak``: many randomised runs, each in a process of its own, with its seed recorded.

``python tests/nemesis/soak.py --runs 200 --first-seed 1 --results soak.jsonl``: runs whose seeds
are in the results already are not done again. Exits 1 when a run found a problem.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[2])]

from fixtures.object_stores import STORES  # noqa: E402
from fixtures.pace import allow  # noqa: E402
from fixtures.shifted_clock import NoShiftedClockError, compile_library  # noqa: E402
from fixtures.warm_python import LIBRARY, WarmProcess, kill_whole, warm_python  # noqa: E402

from nemesis.files import run_files  # noqa: E402
from nemesis.outsiders import OUTSIDERS  # noqa: E402
from nemesis.replica import BUCKET, run_replica  # noqa: E402
from nemesis.run import Capture, PartitionMode, Report, run  # noqa: E402
from nemesis.shared import run_shared  # noqa: E402
from spanner_schema.model.schema import Dialect  # noqa: E402 (the tests' folder has to be on the path first)
from watcher.process.line_files import append_line  # noqa: E402
from watcher.replica.cuts.cut import DELTA  # noqa: E402

RUN_SECONDS_MAX = 300
KEPT = ("changes.jsonl", "watcher.log", "watch.toml")


@dataclass(frozen=True, slots=True)
class Kind:
    """What every run of a soak has in common."""

    seconds: float
    capture: Capture
    mode: PartitionMode
    dialect: Dialect
    shared: bool
    replica: bool
    files: bool
    to: str


def run_once(seed: int, kind: Kind, keep: Path | None) -> dict[str, Any]:
    """The report of a run in this process; ``keep`` is where the files of a wrong run go."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            report = asdict(run_kind(Path(folder), seed, kind))
        except AssertionError:
            report = {"seed": seed, "problems": [traceback.format_exc()[-3000:]]}
        if report["problems"] and keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            for name in KEPT:
                if (path := Path(folder) / name).exists():
                    shutil.copy(path, keep / f"{seed}-{name}")
        return report


def run_kind(folder: Path, seed: int, kind: Kind) -> Report:
    """A run of this kind."""
    if kind.replica:
        return run_replica(folder, seed, kind.seconds, kind.to)
    if kind.files:
        return run_files(folder, seed, kind.seconds, kind.capture)
    if kind.shared:
        return run_shared(folder, seed, kind.seconds, kind.dialect)
    return run(
        folder,
        seed,
        kind.seconds,
        capture=kind.capture,
        mode=kind.mode,
        dialect=kind.dialect,
    )


def run_in_process(seed: int, kind: Kind, keep: Path) -> dict[str, Any]:
    """The report of a run in a process of its own."""
    command = [__file__, "--one", str(seed), "--seconds", str(kind.seconds)]
    command += ["--capture", kind.capture, "--partition-mode", kind.mode]
    command += ["--dialect", kind.dialect.value, *(["--shared"] if kind.shared else [])]
    command += ["--replica", "--to", kind.to] if kind.replica else []
    command += ["--files"] if kind.files else []
    command += ["--keep", str(keep)]
    process = WarmProcess(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        output, errors = process.communicate(timeout=allow(RUN_SECONDS_MAX))
    except subprocess.TimeoutExpired:
        kill_whole(process)
        return {"seed": seed, "problems": [f"it did not end within {RUN_SECONDS_MAX:.0f} s"]}
    lines = output.splitlines()
    if process.returncode != 0 or not lines:
        return {"seed": seed, "problems": [f"exit code {process.returncode}: {errors[-3000:]}"]}
    report: dict[str, Any] = json.loads(lines[-1])
    return report


def main() -> int:
    """Reads the command line; the exit code."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4, help="how long each run writes")
    parser.add_argument("--capture", choices=["poll", "change-stream"], default="poll")
    parser.add_argument(
        "--partition-mode",
        choices=["IMMUTABLE_KEY_RANGE", "MUTABLE_KEY_RANGE"],
        default="IMMUTABLE_KEY_RANGE",
        help="of the change stream",
    )
    parser.add_argument(
        "--dialect",
        choices=[dialect.value for dialect in Dialect],
        default=Dialect.GOOGLESQL.value,
        help="of the database",
    )
    parser.add_argument(
        "--shared", action="store_true", help="several instances share the consumer, which polls"
    )
    parser.add_argument(
        "--replica", action="store_true", help="copies without Spark, of a change stream"
    )
    parser.add_argument(
        "--to", choices=list(OUTSIDERS), default=DELTA, help="the format of the copies"
    )
    parser.add_argument("--files", action="store_true", help="into files by table and time")
    parser.add_argument(
        "--store", choices=list(STORES), help="the copies are in a bucket of such a server"
    )
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--results", type=Path, default=Path("soak.jsonl"))
    parser.add_argument(
        "--keep", type=Path, default=Path("soak-wrong"), help="for the output of wrong runs"
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    dialect = Dialect(options.dialect)
    kind = Kind(
        options.seconds,
        options.capture,
        options.partition_mode,
        dialect,
        options.shared,
        options.replica,
        options.files,
        options.to,
    )
    for one in ("replica", "files"):
        if getattr(kind, one) and (kind.shared or dialect is not Dialect.GOOGLESQL):
            parser.error(f"--{one} goes with no other kind")
    if kind.replica and kind.files:
        parser.error("--replica and --files are two kinds")
    if options.store and not (kind.replica and kind.to == DELTA):
        parser.error("--store goes with --replica in Delta")
    if kind.to != DELTA and not kind.replica:
        parser.error("--to goes with --replica")
    if kind.shared and kind.capture != "poll":
        parser.error("--shared polls")
    if options.one is not None:
        report = run_once(options.one, kind, options.keep)
        print(json.dumps(report), flush=True)
        os._exit(0)  # a writer may hang in the client's retries against a server that is gone
    known = []
    if options.results.exists():
        known = [json.loads(line) for line in options.results.read_text().splitlines()]
    seeds = range(options.first_seed, options.first_seed + options.runs)
    missing = [seed for seed in seeds if seed not in {report["seed"] for report in known}]
    with suppress(NoShiftedClockError):  # each report says it
        os.environ[LIBRARY] = str(compile_library())
    with (
        store_copies(options.store) if options.store else nullcontext(),
        warm_python(),
        ThreadPoolExecutor(options.parallel) as threads,
    ):
        for report in threads.map(lambda seed: run_in_process(seed, kind, options.keep), missing):
            append_line(options.results, json.dumps(report))
            known.append(report)
            outcome = "; ".join(report["problems"])[:2000] if report["problems"] else "right"
            print(f"seed {report['seed']}: {outcome}", flush=True)
    return print_summary(known)


@contextmanager
def store_copies(name: str) -> Iterator[None]:
    """Runs have their copies in a bucket, meanwhile."""
    store = STORES[name]
    with store.run() as server:
        os.environ |= store.describe(server) | {BUCKET: store.make_bucket(server)}
        yield


def print_summary(reports: list[dict[str, Any]]) -> int:
    """Prints what was exercised; returns the exit code: 1 when anything was wrong."""
    struck: Counter[str] = Counter()
    for report in reports:
        struck.update(report.get("struck", {}))
    wrong = [report["seed"] for report in reports if report["problems"]]
    for name in ("commits", "lines", "fingerprints"):
        print(f"{name}: {sum(int(str(report.get(name, 0))) for report in reports):,}")
    for blow, count in struck.most_common():
        print(f"{blow}: {count:,}")
    print(f"runs: {len(reports)}, wrong: {len(wrong)} {wrong or ''}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

"""Many runs, one after another, each in a process of its own; what they found together."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from conformance.churn import Churn, ChurnReport
from conformance.judges.arrivals import Latency
from conformance.presets import PRESETS
from conformance.recording import Finding
from conformance.run import SETTLES_MAX, Report, assess, read_recording
from conformance.settings import Settings, split_command
from conformance.verdict import KINDS
from watcher.model.errors import ConfigurationError, UnavailableError, WatcherError

EXTRA_SECONDS = 1_800.0
"""What a run may take beside its own times."""
END_SECONDS_MAX = 30.0
WORDS_MAX = 2_000
EVIDENCE_MAX = 4


def run_all(settings: Settings, runs: int, folder: Path) -> Iterator[Report]:
    """A report for each seed from the one of the settings on. Raises ConfigurationError,
    UnavailableError where the server does not start, and WatcherError."""
    check_preset(settings.preset)
    for seed in range(settings.seed, settings.seed + runs):
        yield run_in_process(replace(settings, seed=seed), folder / f"seed-{seed}")


def check_preset(name: str) -> None:
    """Raises ConfigurationError, with the reason, where a system that is known by name cannot run
    on this machine."""
    preset = PRESETS.get(name)
    if preset is None or not preset.check:
        return
    command = split_command(preset.check, {"python": sys.executable})
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it does not say why"]
        why = lines[-1].removeprefix("error: ")
        raise ConfigurationError(
            f"--against {name} cannot run here, and was skipped: {why} ({preset.description})"
        )


def run_in_process(settings: Settings, folder: Path) -> Report:
    """A run in a process and a process group of its own."""
    settings.check()
    folder.mkdir(parents=True)
    (folder / "settings.json").write_text(json.dumps(asdict(settings)))
    log = folder / "run.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "conformance", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        code = process.wait(
            settings.start_seconds
            + settings.seconds
            + SETTLES_MAX * max(settings.settle_seconds, settings.start_seconds)
            + settings.stop_seconds
            + EXTRA_SECONDS
        )
    except subprocess.TimeoutExpired as error:
        raise WatcherError(
            f"the run of seed {settings.seed} did not end within {error.timeout:.0f} s"
        ) from error
    finally:
        end_group(process)
    if code == 0:
        return read_report(folder)
    words = log.read_text(errors="replace").strip()[-WORDS_MAX:]
    if code == 2:
        raise ConfigurationError(words)
    if "embedded Spanner did not start" in words:
        raise UnavailableError(words)
    raise WatcherError(f"the run of seed {settings.seed} could not be done:\n{words}")


def end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a run, its server and its command, if they still run."""
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_SECONDS_MAX)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def judge_again(folder: Path) -> Report:
    """The report of a run that was kept. Raises ConfigurationError."""
    try:
        settings, recording = read_recording(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"{folder} is not the folder of a run (--keep FOLDER has one for each seed): {error}"
        ) from error
    return assess(settings, recording)


def read_report(folder: Path) -> Report:
    """The report of a run's file."""
    values: dict[str, Any] = json.loads((folder / "report.json").read_text())
    values["findings"] = [
        Finding(each["kind"], each["text"], tuple(each["lines"])) for each in values["findings"]
    ]
    for name in ("latency", "undisturbed"):
        values[name] = Latency(**values[name]) if values[name] else None
    churn = values["churn"]
    values["churn"] = ChurnReport(Churn(**churn["churn"]), churn["events"]) if churn else None
    return Report(**values)


# For people and programs.


def describe_run(report: Report, findings_max: int) -> Iterator[str]:
    """The lines about a run: what it did, and its first findings."""
    blows = ", ".join(f"{count} {name}" for name, count in sorted(report.blows.items()))
    yield (
        f"seed {report.seed}: {describe_findings([report])}; {report.commits:,} commits,"
        f" {report.changes:,} changes, {report.lines:,} lines; {blows or 'no blows'};"
        f" {describe_repeats(report)}"
    )
    if report.churn is not None:
        yield f"  {describe_churn(report.churn)}"
    for finding in report.findings[:findings_max]:
        lines = ", ".join(map(str, finding.lines[:EVIDENCE_MAX]))
        yield f"  {finding.kind}: {finding.text}" + (f" (line {lines})" if lines else "")
    if len(report.findings) > findings_max:
        yield f"  and {len(report.findings) - findings_max:,} more"


def describe_churn(report: ChurnReport) -> str:
    """What changed, and how often."""
    churn, events = report.churn, report.events
    partitions = f"partitions every {churn.partition_seconds:g} s"
    return (
        f"churn of seed {churn.seed}: {partitions if churn.partition_seconds else 'no partitions'},"
        f" {events.get('schema', 0):,} schema changes,"
        f" {events.get('writer_started', 0):,} writers started,"
        f" {events.get('writer_ended', 0):,} ended"
    )


def describe_repeats(report: Report) -> str:
    """How many changes came again, and how many of them a blow explains."""
    if not report.repeats:
        return "no repeats"
    causes = ", ".join(f"{count:,} {name}" for name, count in sorted(report.explained.items()))
    explained = f"{sum(report.explained.values()):,} explained" + (f" ({causes})" if causes else "")
    return f"repeats: {explained}, {report.unexplained:,} unexplained"


def describe_all(reports: Sequence[Report]) -> Iterator[str]:
    """The lines about all runs."""
    wrong = [report.seed for report in reports if report.findings]
    runs = f"{len(reports)} run" + ("" if len(reports) == 1 else "s")
    where = f", wrong with seed {', '.join(map(str, wrong))}" if wrong else ""
    yield f"{runs}: {describe_findings(reports)}{where}"
    explained = sum(count for report in reports for count in report.explained.values())
    unexplained = sum(report.unexplained for report in reports)
    yield f"repeats: {explained:,} explained by blows, {unexplained:,} unexplained"
    for name, chosen in (
        ("latency", [report.latency for report in reports]),
        ("latency, undisturbed", [report.undisturbed for report in reports]),
    ):
        known = [latency for latency in chosen if latency is not None]
        if known:
            yield (
                f"{name}: p50 {median([each.p50 for each in known]):.3f} s,"
                f" p99 {median([each.p99 for each in known]):.3f} s (medians of the runs),"
                f" most {max(each.max for each in known):.3f} s"
            )


def median(values: list[float]) -> float:
    """The middle one."""
    return sorted(values)[len(values) // 2]


def describe_findings(reports: Sequence[Report]) -> str:
    """How many there are of each kind."""
    counts = count_findings(reports)
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) or "right"


def count_findings(reports: Sequence[Report]) -> dict[str, int]:
    """How many findings there are of each kind that there is."""
    counts = Counter(finding.kind for report in reports for finding in report.findings)
    return {kind: counts[kind] for kind in KINDS if counts[kind]}


def make_json(settings: Settings, reports: Sequence[Report]) -> dict[str, object]:
    """All runs as one JSON object."""
    return {
        "settings": asdict(settings),
        "findings": count_findings(reports),
        "runs": [asdict(report) for report in reports],
    }

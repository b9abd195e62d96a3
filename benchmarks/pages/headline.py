"""What a page says first: when, of which commit, on which machine, and three numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.pages.wording import NOT_MEASURED, PER_SECOND, ROWS, SECONDS
from benchmarks.result import Environment, RunResult, ScenarioResult
from benchmarks.run_settings import PEERS

REFERENCE = "latency"
"""The scenario whose p99 stands for a page that has it: others try what is slow on purpose."""


@dataclass(frozen=True, slots=True)
class Number:
    """``origin`` says which run it is of."""

    label: str
    value: str
    unit: str
    origin: str
    lost: bool = False


@dataclass(frozen=True, slots=True)
class NamedRun:
    """A run and the scenario that it belongs to."""

    scenario: str
    run: RunResult

    @property
    def name(self) -> str:
        """Which run it is."""
        return f"{self.scenario}: {self.run.name.removeprefix(self.scenario + ': ')}"


def list_runs(results: Sequence[ScenarioResult]) -> list[NamedRun]:
    """The runs of this product; those of others are there to compare with."""
    return [
        NamedRun(result.scenario, run)
        for result in results
        for run in result.runs
        if run.plan.consumer.system not in PEERS
    ]


def find_slowest(results: Sequence[ScenarioResult]) -> tuple[NamedRun | None, int]:
    """The run of a steady load with the highest p99, and how many such runs there are. A rising
    load is left out, which offers more than can be delivered on purpose, and a backlog, whose rows
    have waited before."""
    steady = [
        each
        for each in list_runs(results)
        if each.run.plan.write
        and each.run.plan.workload.profile == "steady"
        and each.run.since_intended.count
    ]
    slowest = max(steady, key=lambda each: each.run.since_intended.p99, default=None)
    return slowest, len(steady)


def find_fastest(results: Sequence[ScenarioResult]) -> tuple[NamedRun | None, int]:
    """The run that delivered the most rows a second, and how many runs there are."""
    runs = [each for each in list_runs(results) if each.run.verdict.delivered]
    return max(runs, key=lambda each: each.run.delivered_per_second, default=None), len(runs)


def list_numbers(results: Sequence[ScenarioResult]) -> list[Number]:
    """p99, rows per second, missing rows."""
    reference = [result for result in results if result.scenario == REFERENCE]
    slowest, loads = find_slowest(reference)
    if slowest is None:
        slowest, loads = find_slowest(results)
    fastest, runs = find_fastest(results)
    return [describe_p99(slowest, loads), describe_rate(fastest, runs), describe_missing(results)]


def describe_p99(slowest: NamedRun | None, loads: int) -> Number:
    """The latency that 99 of 100 rows do not exceed."""
    label = "p99 latency, from when a commit was due until its row was delivered"
    if slowest is None:
        return Number(label, NOT_MEASURED, "", "no run had a steady load")
    origin = f"{slowest.name}; {describe_rank('the highest', loads, 'steady load')}"
    return Number(label, f"{slowest.run.since_intended.p99:.3f}", SECONDS, origin)


def describe_rate(fastest: NamedRun | None, runs: int) -> Number:
    """How fast rows were delivered at best."""
    label = "delivered, at best"
    if fastest is None:
        return Number(label, NOT_MEASURED, "", "no run delivered rows")
    origin = f"{fastest.name}; {describe_rank('the highest', runs, 'run')}"
    return Number(label, f"{fastest.run.delivered_per_second:,.0f}", PER_SECOND, origin)


def describe_missing(results: Sequence[ScenarioResult]) -> Number:
    """What was lost, of all runs."""
    runs = [each.run for each in list_runs(results)]
    if not runs:
        return Number("missing", NOT_MEASURED, "", "no run wrote rows")
    missing = sum(run.verdict.missing for run in runs)
    written = sum(run.verdict.written for run in runs)
    origin = f"of {written:,} written, in {count_words(len(runs), 'run')}"
    return Number("missing", f"{missing:,}", ROWS, origin, missing > 0)


def describe_rank(rank: str, count: int, noun: str) -> str:
    """Such as 'the highest of 5 runs'."""
    return f"{rank} of {count_words(count, noun)}" if count > 1 else f"the only {noun}"


def count_words(count: int, noun: str) -> str:
    """Such as '5 runs'."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def list_facts(results: Sequence[ScenarioResult]) -> list[tuple[str, str]]:
    """Date, commit and machine of the results; all of them where they differ."""
    environments = [result.environment for result in results]
    return [
        ("Date", describe_dates(environments)),
        ("Commit", join_distinct(map(describe_commit, environments))),
        ("Machine", join_distinct(map(describe_machine, environments))),
        ("Load", describe_load(results)),
    ]


def join_distinct(texts: Iterable[str]) -> str:
    """Each text once, in the order of their first appearance."""
    return "; ".join(dict.fromkeys(texts))


def describe_dates(environments: Sequence[Environment]) -> str:
    """When the first began, and when the last did, in UTC."""
    moments = sorted(datetime.fromisoformat(each.started).astimezone(UTC) for each in environments)
    if not moments:
        return NOT_MEASURED
    first, last = (f"{each.day} {each:%B %Y, %H:%M}" for each in (moments[0], moments[-1]))
    if first == last:
        return f"{first} UTC"
    same_day = moments[0].date() == moments[-1].date()
    return f"{first} to {moments[-1]:%H:%M} UTC" if same_day else f"{first} UTC to {last} UTC"


def describe_commit(where: Environment) -> str:
    """The commit, and whether it is all that ran."""
    if where.revision is None:
        release = where.packages.get("spanner-watcher", "unknown")
        return f"not known: installed without its source tree, version {release}"
    commit = where.revision.removesuffix("-dirty")
    return commit if commit == where.revision else f"{commit} with uncommitted changes"


def describe_machine(where: Environment) -> str:
    """What it is, with units in words."""
    cpus = count_words(where.cpus, "CPU")
    memory = f"{where.memory_gb:.1f} gigabytes of memory"
    return f"{where.platform}, {cpus}, {memory}, Python {where.python}"


def describe_load(results: Sequence[ScenarioResult]) -> str:
    """What others used of it at most, where that was recorded."""
    shares = [result.cpu.others_share for result in results if result.cpu is not None]
    if not shares:
        loads = [result.environment.load for result in results]
        average = f"load average before the start {loads[0]:.2f}; " if len(loads) == 1 else ""
        return f"{average}what other processes used is not recorded"
    return f"other processes used at most {100 * max(shares):.0f} % of the CPU time"

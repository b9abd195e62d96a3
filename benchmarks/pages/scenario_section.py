"""A scenario on the page, as values: its verdict, figures, charts, settings, runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.overrides import list_settings
from benchmarks.pages.elements import (
    NamedChart,
    Table,
    TableColumn,
    keep_telling_charts,
)
from benchmarks.pages.figure_tables import FigureTables, list_cases, list_figures
from benchmarks.pages.guide import format_value
from benchmarks.pages.headline import (
    count_words,
    describe_commit,
    describe_dates,
    describe_load,
    describe_machine,
    list_runs,
)
from benchmarks.pages.wording import SECONDS
from benchmarks.result import RunResult, ScenarioResult
from benchmarks.scenario import make_run_charts
from benchmarks.scenarios import SCENARIOS

VERDICT = {
    "written": "written",
    "delivered": "delivered",
    "superseded": "left out, rightly: a newer version was in the same window",
    "missing": "missing",
    "invented": "delivered, but never written",
    "wrong": "delivered with the content of another version",
    "duplicates": "delivered again",
    "reordered": "delivered after a newer version",
}


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run: what became of its rows, what its processes used, charts."""

    name: str
    rows: Table
    processes: Table
    charts: Sequence[NamedChart]


@dataclass(frozen=True, slots=True)
class SettingsPart:
    """The settings that differ from the defaults, or ``equal``, a sentence that says that none
    does; all settings, and the machine."""

    equal: str
    different: Table | None
    every: Table
    machine: Table


@dataclass(frozen=True, slots=True)
class Section:
    """A scenario. ``anchor`` is the id of its section. It has ``figures``, or ``cases``: a table
    each in which every row is a figure of its own."""

    anchor: str
    result: ScenarioResult
    checks: str
    figures: Sequence[FigureTables]
    cases: Sequence[Table]
    charts: Sequence[NamedChart]
    settings: SettingsPart
    runs: Sequence[RunPart]

    @property
    def parts(self) -> dict[str, str]:
        """The titles of its parts, by the end of their id."""
        titles = {
            "figures": "Figures",
            "charts": "Charts",
            "settings": "Settings",
            "runs": "Runs",
        }
        is_there = {
            "figures": self.result.figures,
            "charts": self.charts,
            "runs": self.runs,
        }
        return {part: title for part, title in titles.items() if is_there.get(part, True)}


def make_section(anchor: str, result: ScenarioResult, charts: Iterator[str]) -> Section:
    """A scenario. ``charts`` are names for its charts, unique in the page."""
    return Section(
        anchor=anchor,
        result=result,
        checks=describe_checks(result),
        figures=list_figures(result),
        cases=list_cases(result),
        charts=keep_telling_charts(result.charts, charts),
        settings=make_settings(result),
        runs=[make_run(run, charts) for run in result.runs],
    )


def describe_checks(result: ScenarioResult) -> str:
    """What the outcome rests on."""
    if result.outcome == "skipped":
        return "Skipped: nothing was run."
    if result.outcome == "failed":
        return "Failed: see the problems below."
    runs = [each.run for each in list_runs([result])]
    if not runs:
        return "Passed: it ran to its end without an error; it writes no rows to look for."
    written = sum(run.verdict.written for run in runs)
    return (
        f"Passed: of {count_words(written, 'row')} written in {count_words(len(runs), 'run')} none"
        " is missing, and none came twice, out of order, changed or from nowhere."
    )


def make_settings(result: ScenarioResult) -> SettingsPart:
    """Those that differ from the defaults, and all."""
    default = find_defaults(result)
    release = "" if result.defaults is not None else " of this release"
    names = list(result.settings)
    different = [n for n in names if default is not None and default.get(n) != result.settings[n]]
    columns = [
        TableColumn("differs from the defaults" + release, different, words=True),
        TableColumn("here", [format_setting(result.settings[n]) for n in different], words=True),
        TableColumn(
            "default",
            [format_setting((default or {}).get(n)) for n in different],
            words=True,
        ),
    ]
    every = [
        TableColumn("setting", names, words=True),
        TableColumn("value", [format_setting(result.settings[n]) for n in names], words=True),
    ]
    equal = f"All settings are the defaults{release}."
    return SettingsPart(
        equal=equal if default is not None else "The defaults are not known.",
        different=Table("settings that differ", columns) if different else None,
        every=Table("all settings", every),
        machine=make_machine(result),
    )


def find_defaults(result: ScenarioResult) -> dict[str, object] | None:
    """The defaults as they were; of this release for a file that does not have them, None for a
    scenario that is no more."""
    if result.defaults is not None:
        return result.defaults
    scenario = SCENARIOS.get(result.scenario)
    return list_settings(scenario.settings()) if scenario else None


def format_setting(value: object) -> str:
    """A value as ``--set`` takes it."""
    return format_value(tuple(value) if isinstance(value, list) else value) or "none"


def make_machine(result: ScenarioResult) -> Table:
    """Where and when it ran."""
    where = result.environment
    facts = {
        "date": describe_dates([where]),
        "duration": f"{result.seconds:.1f} {SECONDS}",
        "commit": describe_commit(where),
        "machine": describe_machine(where),
        "load": describe_load([result]),
        "load average (1 minute) before the start": f"{where.load:.2f}",
        **where.packages,
    }
    columns = [
        TableColumn("what", list(facts), words=True),
        TableColumn("value", list(facts.values()), words=True),
    ]
    return Table("machine and versions", columns)


def make_run(run: RunResult, charts: Iterator[str]) -> RunPart:
    """A run."""
    verdict = [
        TableColumn("what became of the rows", list(VERDICT.values()), words=True),
        TableColumn("number", [f"{getattr(run.verdict, name):,}" for name in VERDICT]),
    ]
    used = list(run.processes.items())
    processes = [
        TableColumn("process", [name for name, _ in used], words=True),
        TableColumn("CPU time", [f"{usage.cpu_seconds:,.2f}" for _, usage in used], SECONDS),
        TableColumn("peak memory", [f"{usage.peak_mb:,.1f}" for _, usage in used], "megabytes"),
    ]
    return RunPart(
        name=run.name,
        rows=Table("rows", verdict),
        processes=Table("processes", processes),
        charts=keep_telling_charts(make_run_charts(run), charts),
    )

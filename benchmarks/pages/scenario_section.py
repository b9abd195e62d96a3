"""A scenario on the page: its verdict, six columns of figures, charts, settings, runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from benchmarks.overrides import list_settings
from benchmarks.pages.charts import Chart
from benchmarks.pages.elements import (
    TableColumn,
    fold,
    render_charts,
    render_list,
    render_table,
    render_warning,
)
from benchmarks.pages.figure_tables import render_figures
from benchmarks.pages.guide import format_value
from benchmarks.pages.headline import (
    count_words,
    describe_commit,
    describe_dates,
    describe_load,
    describe_machine,
    list_runs,
)
from benchmarks.pages.wording import SECONDS, name_in_words
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


def render_section(anchor: str, result: ScenarioResult, charts: Iterator[str]) -> str:
    """A scenario. ``charts`` are names for its charts, unique in the page."""
    outcome = result.outcome
    parts = [
        f'<section id="{escape(anchor)}"><h2>{escape(anchor)}'
        f' <span class="badge {outcome}">{outcome}</span></h2>',
        f'<p>{escape(result.summary)}<br><span class="quiet">{escape(describe_checks(result))}'
        "</span></p>",
        render_warning(f"The machine was busy: {result.busy}.") if result.busy else "",
        render_list("Problems", result.problems, "problems"),
        render_list("Notes", result.notes, "notes"),
        render_list("Left out", result.skipped, "left-out"),
        *(
            f'<h3 id="{escape(anchor)}-{part}">{title}</h3>{render_part(part, result, charts)}'
            for part, title in list_parts(result).items()
        ),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def list_parts(result: ScenarioResult) -> dict[str, str]:
    """The titles of a section's parts, by the end of their id."""
    titles = {"figures": "Figures", "charts": "Charts", "settings": "Settings", "runs": "Runs"}
    charts = keep_telling_charts(result.charts)
    is_there = {"figures": result.figures, "charts": charts, "runs": result.runs}
    return {part: title for part, title in titles.items() if is_there.get(part, True)}


def render_part(part: str, result: ScenarioResult, charts: Iterator[str]) -> str:
    """What stands under one of the titles."""
    if part == "figures":
        return render_figures(result)
    if part == "charts":
        return render_charts(name_charts(result.charts, charts))
    if part == "runs":
        return "".join(render_run(run, charts) for run in result.runs)
    return render_settings(result)


def name_charts(charts: Sequence[Chart], names: Iterator[str]) -> list[tuple[str, Chart]]:
    """Each that tells something, with a name of its own."""
    return [(next(names), chart) for chart in keep_telling_charts(charts)]


def keep_telling_charts(charts: Sequence[Chart]) -> list[Chart]:
    """Without those of a single point: the table says as much."""
    return [chart for chart in charts if count_points(chart) > 1]


def count_points(chart: Chart) -> int:
    """Bars, or the points of the longest line."""
    if chart.bars:
        return len(chart.lines)
    return max((len(line.points) for line in chart.lines), default=0)


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


def render_settings(result: ScenarioResult) -> str:
    """Those that differ from the defaults; the others and the machine folded."""
    default = find_defaults(result)
    release = "" if result.defaults is not None else " of this release"
    if default is None:
        return f"<p>The defaults are not known.</p>{render_all_settings(result)}"
    different = [n for n, value in result.settings.items() if default.get(n) != value]
    if not different:
        return f"<p>All settings are the defaults{release}.</p>{render_all_settings(result)}"
    columns = [
        TableColumn("differs from the defaults" + release, different, words=True),
        TableColumn("here", [format_setting(result.settings[n]) for n in different], words=True),
        TableColumn("default", [format_setting(default.get(n)) for n in different], words=True),
    ]
    return render_table("settings that differ", columns) + render_all_settings(result)


def find_defaults(result: ScenarioResult) -> dict[str, object] | None:
    """The defaults as they were; of this release for a file that does not have them, None for a
    scenario that is no more."""
    if result.defaults is not None:
        return result.defaults
    scenario = SCENARIOS.get(result.scenario)
    return list_settings(scenario.settings()) if scenario else None


def render_all_settings(result: ScenarioResult) -> str:
    """Every setting, how to run it again, and the machine."""
    names = list(result.settings)
    settings = [
        TableColumn("setting", names, words=True),
        TableColumn("value", [format_setting(result.settings[n]) for n in names], words=True),
    ]
    told = (
        "<p>Times are in seconds;"
        f" <code>spanner-watcher bench list {escape(result.scenario)}</code> explains each.</p>"
    )
    return (
        f'<p>To run it again:</p><pre tabindex="0">{escape(result.command)}</pre>'
        + fold(f"All {len(names)} settings", told + render_table("all settings", settings))
        + fold("Machine and versions", render_machine(result))
    )


def format_setting(value: object) -> str:
    """A value as ``--set`` takes it."""
    return format_value(tuple(value) if isinstance(value, list) else value) or "none"


def render_machine(result: ScenarioResult) -> str:
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
    return render_table("machine and versions", columns)


def render_run(run: RunResult, charts: Iterator[str]) -> str:
    """A run, folded: what became of its rows, what its processes used, charts."""
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
    tables = render_table("rows", verdict) + render_table("processes", processes)
    drawn = render_charts(name_charts(make_run_charts(run), charts))
    return fold(name_in_words(run.name), f'<div class="tables">{tables}</div>{drawn}')

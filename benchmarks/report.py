"""Results as one HTML page that stands alone: no script, no file beside it, no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import count

from benchmarks.plots import svg
from benchmarks.result import Cell, Chart, Environment, RunResult, ScenarioResult
from benchmarks.scenario import make_run_charts

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: #1a1a1a; background: #fff }
h1, h2, h3 { line-height: 1.2 } h2 { border-top: 2px solid #ddd; padding-top: 1.5rem }
table { border-collapse: collapse; font-size: 13px; margin: 1rem 0 }
th, td { padding: .25rem .7rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left } th { background: #f5f5f5 }
code { background: #f5f5f5; padding: .1rem .3rem } .charts { display: flex; flex-wrap: wrap }
.charts svg { max-width: 100%; height: auto; margin: .5rem } details { margin: .5rem 0 }
.passed { color: #006d3c } .failed { color: #b3261e } .scroll { overflow-x: auto }
"""


def report(results: Sequence[ScenarioResult], title: str = "spanner-watcher benchmarks") -> str:
    """The page."""
    numbers = count()
    parts = [
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>',
        f"<style>{STYLE}</style><h1>{escape(title)}</h1>",
        overview(results),
        *(section(result, numbers) for result in results),
        "</html>\n",
    ]
    return "\n".join(parts)


def overview(results: Sequence[ScenarioResult]) -> str:
    """A line a scenario."""
    rows: list[dict[str, Cell]] = [
        {
            "scenario": result.scenario,
            "what": result.summary,
            "seconds": result.seconds,
            "verdict": result.outcome if result.passed else "FAILED",
        }
        for result in results
    ]
    return table(rows)


def section(result: ScenarioResult, numbers: Iterator[int]) -> str:
    """A scenario."""
    verdict = result.outcome
    return "\n".join(
        [
            f'<h2 id="{escape(result.scenario)}">{escape(result.scenario)}'
            f' <small class="{verdict}">{verdict}</small></h2>',
            f"<p>{escape(result.summary)}<br><code>{escape(result.command)}</code></p>",
            render_list("problems", result.problems, "failed"),
            render_list("notes", result.notes),
            render_list("left out", result.skipped),
            table(result.figures),
            drawn(result.charts, numbers),
            *(one_run(run, numbers) for run in result.runs),
            settings(result),
        ]
    )


def one_run(run: RunResult, numbers: Iterator[int]) -> str:
    """A run, folded."""
    verdict: list[dict[str, Cell]] = [
        {name: getattr(run.verdict, name) for name in run.verdict.__dataclass_fields__}
    ]
    processes: list[dict[str, Cell]] = [
        {"process": name, "CPU seconds": usage.cpu_seconds, "peak MB": usage.peak_mb}
        for name, usage in run.processes.items()
    ]
    return "\n".join(
        [
            f"<details><summary>run: {escape(run.name)}</summary>",
            table(verdict),
            table(processes),
            drawn(make_run_charts(run), numbers),
            "</details>",
        ]
    )


def settings(result: ScenarioResult) -> str:
    """Every setting, and the machine."""
    rows: list[dict[str, Cell]] = [
        {"setting": name, "value": str(value)} for name, value in result.settings.items()
    ]
    return (
        "<details><summary>settings and machine</summary>"
        f"{table(rows)}{table(machine(result.environment))}</details>"
    )


def machine(where: Environment) -> list[dict[str, Cell]]:
    """The environment as rows."""
    values = where.model_dump(exclude={"packages"}) | where.packages
    return [{"machine": name, "value": str(value)} for name, value in values.items()]


def render_list(name: str, lines: Sequence[str], kind: str = "") -> str:
    """Some sentences under a name; nothing for none."""
    if not lines:
        return ""
    items = "".join(f"<li>{escape(line)}</li>" for line in lines)
    return f'<div class="{kind}"><b>{escape(name)}</b><ul>{items}</ul></div>'


def drawn(charts: Sequence[Chart], numbers: Iterator[int]) -> str:
    """Charts beside each other."""
    pictures = [svg(c, f"chart{n}") for c, n in zip(charts, numbers, strict=False)]
    return f'<div class="charts">{"".join(pictures)}</div>' if pictures else ""


def table(rows: Sequence[dict[str, Cell]]) -> str:
    """Rows with the columns of all of them, in the order of their first appearance."""
    if not rows:
        return ""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(shown(row.get(c)))}</td>" for c in columns) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def shown(value: Cell) -> str:
    """A cell for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) or (isinstance(value, float) and abs(value) >= 1_000):
        return f"{value:,.0f}"
    return f"{value:g}" if isinstance(value, float) else str(value)

"""Results as one HTML page that stands alone: no script, no file beside it, no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from itertools import count

from benchmarks.pages.elements import (
    TableColumn,
    render_document,
    render_list,
    render_table,
)
from benchmarks.pages.headline import (
    Number,
    count_words,
    describe_missing,
    find_fastest,
    find_slowest,
    list_facts,
    list_numbers,
)
from benchmarks.pages.scenario_section import list_parts, render_section
from benchmarks.pages.wording import NOT_MEASURED, PER_SECOND, ROWS, SECONDS
from benchmarks.result import ScenarioResult

PASSED = (
    "“Passed” means that a scenario ran to its end without an error, and that every row that its"
    " runs had to deliver came, none with other content, twice, out of order, or without having"
    " been written; it says nothing about speed."
)
JAVA = "What the Java watcher loses is counted, but does not fail a scenario."
SECTIONS_WITH_PARTS = 3
"""So many scenarios have their parts in the contents, too."""
NamedResult = tuple[str, ScenarioResult]
"""A result with the id of its section."""


def report(results: Sequence[ScenarioResult], title: str = "spanner-watcher benchmarks") -> str:
    """The page."""
    named = name_sections(results)
    charts = (f"chart{number}" for number in count())
    sections = "\n".join(render_section(anchor, result, charts) for anchor, result in named)
    body = (
        f"{render_lead(results, title)}\n"
        f'<div class="with-contents">{render_contents(named)}\n'
        f"<main>{render_overview(named)}\n{sections}</main></div>"
    )
    return render_document(title, body)


def name_sections(results: Sequence[ScenarioResult]) -> list[NamedResult]:
    """The id of each section: the scenario, with a number where it is there more than once."""
    seen: Counter[str] = Counter()
    named: list[NamedResult] = []
    for result in results:
        seen[result.scenario] += 1
        number = seen[result.scenario]
        named.append((f"{result.scenario}-{number}" if number > 1 else result.scenario, result))
    return named


def render_lead(results: Sequence[ScenarioResult], title: str) -> str:
    """When, of which commit, where, and three numbers; then what must be known of them."""
    facts = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in list_facts(results)
    )
    cards = "".join(render_number(each) for each in list_numbers(results))
    return (
        f'<header><h1>{escape(title)}</h1>\n<dl class="facts">{facts}</dl>\n'
        f'<dl class="numbers">{cards}</dl>\n{render_busy(results)}'
        f"{render_verdict(results)}</header>"
    )


def render_number(number: Number) -> str:
    """One of the three."""
    lost = ' class="lost"' if number.lost else ""
    return (
        f"<div{lost}><dt>{escape(number.label)}</dt>"
        f'<dd class="value">{escape(number.value)} <small>{escape(number.unit)}</small></dd>'
        f'<dd class="origin">{escape(number.origin)}</dd></div>'
    )


def render_busy(results: Sequence[ScenarioResult]) -> str:
    """A warning with the figure of each scenario that others disturbed."""
    lines = [f"{each.scenario}: {each.busy}" for each in results if each.busy is not None]
    title = "The machine was busy: the figures may be worse than on one that nobody else uses"
    return render_list(title, lines, "warning")


def render_verdict(results: Sequence[ScenarioResult]) -> str:
    """How many scenarios passed, and what that means."""
    outcomes = Counter(result.outcome for result in results)
    parts = [
        f'<span class="{name}">{outcomes[name]} {name}</span>'
        for name in ("passed", "failed", "skipped")
        if outcomes[name]
    ]
    java = any(run.plan.consumer.system == "java" for each in results for run in each.runs)
    meaning = f"{PASSED} {JAVA}" if java else PASSED
    total = count_words(len(results), "scenario")
    return f"<p><strong>{total}: {', '.join(parts)}.</strong> {escape(meaning)}</p>"


def render_contents(named: Sequence[NamedResult]) -> str:
    """Links to all sections, and to their parts where there are few sections."""
    few = len(named) <= SECTIONS_WITH_PARTS
    items = "".join(
        f'<li><a href="#{escape(anchor)}">{escape(anchor)}</a>'
        f"{render_parts(anchor, result) if few else ''}</li>"
        for anchor, result in named
    )
    return (
        '<nav aria-labelledby="contents"><h2 id="contents">Contents</h2>'
        f'<ul><li><a href="#overview">Overview</a></li>{items}</ul></nav>'
    )


def render_parts(anchor: str, result: ScenarioResult) -> str:
    """Links to the parts of a section."""
    items = "".join(
        f'<li><a href="#{escape(anchor)}-{part}">{title}</a></li>'
        for part, title in list_parts(result).items()
    )
    return f"<ul>{items}</ul>"


def render_overview(named: Sequence[NamedResult]) -> str:
    """A line a scenario."""
    results = [result for _, result in named]
    outcomes = [result.outcome for result in results]
    slowest = [find_slowest([result])[0] for result in results]
    fastest = [find_fastest([result])[0] for result in results]
    columns = [
        TableColumn("scenario", [anchor for anchor, _ in named], words=True),
        TableColumn("outcome", outcomes, words=True, kinds=outcomes),
        TableColumn(
            "highest p99 latency",
            [f"{s.run.since_intended.p99:.3f}" if s else NOT_MEASURED for s in slowest],
            SECONDS,
        ),
        TableColumn(
            "delivered, at best",
            [f"{f.run.delivered_per_second:,.0f}" if f else NOT_MEASURED for f in fastest],
            PER_SECOND,
        ),
        TableColumn("missing", [describe_missing([result]).value for result in results], ROWS),
        TableColumn("took", [f"{result.seconds:,.0f}" for result in results], SECONDS),
    ]
    return f'<section id="overview"><h2>Overview</h2>{render_table("overview", columns)}</section>'

"""Results as one HTML page that stands alone: no script, no file beside it, no network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count

from benchmarks.pages.elements import TEMPLATES, Table, TableColumn
from benchmarks.pages.headline import (
    count_words,
    describe_missing,
    find_fastest,
    find_slowest,
    list_facts,
    list_numbers,
)
from benchmarks.pages.scenario_section import Section, make_section
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


def report(results: Sequence[ScenarioResult], title: str = "spanner-watcher benchmarks") -> str:
    """The page."""
    charts = (f"chart{number}" for number in count())
    names = name_sections(results)
    sections = [make_section(*each, charts) for each in zip(names, results, strict=True)]
    outcomes = Counter(result.outcome for result in results)
    java = any(run.plan.consumer.system == "java" for each in results for run in each.runs)
    return TEMPLATES.get_template("report.html").render(
        title=title,
        facts=list_facts(results),
        numbers=list_numbers(results),
        busy=[f"{each.scenario}: {each.busy}" for each in results if each.busy is not None],
        total=count_words(len(results), "scenario"),
        outcomes=[
            (name, outcomes[name]) for name in ("passed", "failed", "skipped") if outcomes[name]
        ],
        meaning=f"{PASSED} {JAVA}" if java else PASSED,
        overview=make_overview(sections),
        sections=sections,
        with_parts=len(sections) <= SECTIONS_WITH_PARTS,
    )


def name_sections(results: Sequence[ScenarioResult]) -> list[str]:
    """The id of each section: the scenario, with a number where it is there more than once."""
    seen: Counter[str] = Counter()
    names: list[str] = []
    for result in results:
        seen[result.scenario] += 1
        number = seen[result.scenario]
        names.append(f"{result.scenario}-{number}" if number > 1 else result.scenario)
    return names


def make_overview(sections: Sequence[Section]) -> Table:
    """A line a scenario."""
    results = [section.result for section in sections]
    outcomes = [result.outcome for result in results]
    slowest = [find_slowest([result])[0] for result in results]
    fastest = [find_fastest([result])[0] for result in results]
    columns = [
        TableColumn("scenario", [section.anchor for section in sections], words=True),
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
    return Table("overview", columns)

"""The page of results: what it leads with, units, folded columns, warnings; and it is whole."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from benchmarks.cli import app
from benchmarks.cli.results import compare
from benchmarks.machine_load import CpuUse
from benchmarks.model import Assumptions, chart
from benchmarks.pages.charts import Chart, Line
from benchmarks.pages.elements import render_page
from benchmarks.pages.report import report
from benchmarks.result import ScenarioResult, Series
from benchmarks.scenario import list_problems
from benchmarks.screen import print_result

OLDER = Path(__file__).with_name("results") / "older-release.json"
"""Written by a release whose results said neither what others used nor what the defaults were."""
QUIET = CpuUse(seconds=10, cpus=2, ours=12.0, others=0.6)
DISTURBED = CpuUse(seconds=10, cpus=2, ours=12.0, others=7.6)
VOID = {"meta", "br", "path", "use", "rect"}
LINKS = {"href", "src", "xlink:href", "srcset", "action", "data"}
Table = list[list[str]]


class Page(HTMLParser):
    """A page that was read: its text, elements, ids and links, and the rows of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.tables: list[tuple[bool, Table]] = []
        self.feed(text)
        self.close()

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def table_with(self, column: str) -> tuple[bool, Table]:
        """Whether the first table with a column of that name is folded, and its rows."""
        return next(each for each in self.tables if column in each[1][0])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in LINKS]
        if tag == "table":
            self.tables.append(("details" in self.open, []))
        elif tag == "tr":
            self.tables[-1][1].append([])
        elif tag in {"td", "th"}:
            self.tables[-1][1][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if self.open and {"td", "th"} & set(self.open):
            row = self.tables[-1][1][-1]
            row[-1] = " ".join(f"{row[-1]} {data}".split())


@pytest.fixture(scope="module")
def older() -> ScenarioResult:
    return ScenarioResult.load(OLDER)


@pytest.fixture(scope="module")
def newer(older: ScenarioResult) -> ScenarioResult:
    """The same, as a release of today records it: quiet, at the defaults but for the rates."""
    defaults = older.settings | {"rates": [100, 500]}
    return change(older, cpu=QUIET, defaults=defaults)


@pytest.fixture(scope="module")
def drawn(newer: ScenarioResult) -> str:
    """The page with its charts, of two results."""
    return report([newer, newer])


@pytest.fixture(scope="module")
def lean(newer: ScenarioResult) -> ScenarioResult:
    """The same without anything to draw: quick to render."""
    run = newer.runs[0]
    series = Series(written=(), delivered=(), backlog=(), p50=(), p99=(), maximum=())
    late = replace(run.since_intended, curve=())
    values = {"series": series, "index_rows": (), "since_intended": late}
    return change(newer, charts=(), runs=(run.model_copy(update=values),))


def change(result: ScenarioResult, **values: object) -> ScenarioResult:
    return result.model_copy(update=values)


def change_run(result: ScenarioResult, **values: object) -> ScenarioResult:
    return change(result, runs=(result.runs[0].model_copy(update=values),))


def change_place(result: ScenarioResult, **values: object) -> ScenarioResult:
    return change(result, environment=result.environment.model_copy(update=values))


def read_page(*results: ScenarioResult) -> Page:
    return Page(report(results))


def read_lead(*results: ScenarioResult) -> str:
    """The text above the contents."""
    return read_page(*results).text.partition("Contents")[0]


def test_the_page_leads_with_date_commit_machine_and_three_numbers(lean: ScenarioResult) -> None:
    lead, run = read_lead(lean), lean.runs[0]
    for text in (
        "Date 22 November 2026, 09:42 UTC",
        f"Commit {lean.environment.revision}",
        "Machine Linux x86_64, 2 CPUs, 25.3 gigabytes of memory",
        "p99 latency",
        f"{run.since_intended.p99:.3f} seconds",
        f"{run.delivered_per_second:,.0f} rows per second",
        "0 rows",
        f"of {run.verdict.written:,} written, in 1 run",
    ):
        assert text in lead


def test_a_tree_with_changes_is_not_said_to_be_its_commit(lean: ScenarioResult) -> None:
    changed = change_place(lean, revision="abc1234-dirty")
    assert "Commit abc1234 with uncommitted changes" in read_lead(changed)
    assert "Commit not known" in read_lead(change_place(lean, revision=None))


def test_missing_rows_are_the_sum_of_all_runs(lean: ScenarioResult) -> None:
    lost = change_run(lean, verdict=replace(lean.runs[0].verdict, missing=3))
    assert "missing 6 rows" in read_lead(lost, lost)


def test_the_p99_of_a_page_is_of_the_latency_scenario(lean: ScenarioResult) -> None:
    late = lean.runs[0].since_intended
    slow = change_run(lean, since_intended=replace(late, p99=9.0))
    index = change(slow, scenario="index")
    assert f"{late.p99:.3f} seconds" in read_lead(index, lean)
    assert "9.000 seconds" in read_lead(index)


def test_a_rising_load_and_the_java_watcher_are_in_no_headline(lean: ScenarioResult) -> None:
    plan = lean.runs[0].plan
    rising = plan.workload.model_copy(update={"profile": "ramp", "until": 100.0})
    ramp = change_run(lean, plan=plan.model_copy(update={"workload": rising}))
    assert "no run had a steady load" in read_lead(ramp)
    java = plan.consumer.model_copy(update={"system": "java"})
    theirs = change_run(lean, plan=plan.model_copy(update={"consumer": java}))
    lead = read_lead(theirs)
    assert "no run delivered rows" in lead
    assert "What the Java watcher loses is counted, but does not fail a scenario." in lead


def test_a_result_without_runs_has_no_numbers_to_lead_with(lean: ScenarioResult) -> None:
    text = read_page(change(lean, runs=())).text
    assert "no run had a steady load" in text
    assert "it writes no rows to look for" in text


def test_a_busy_machine_is_told_with_the_figure(lean: ScenarioResult) -> None:
    lead = read_lead(change(lean, cpu=DISTURBED))
    assert "The machine was busy" in lead
    assert "other processes used 38 % of its CPU time (0.8 of 2 CPUs)" in lead


def test_a_quiet_machine_is_no_warning(lean: ScenarioResult) -> None:
    text = read_page(lean).text
    assert "was busy" not in text
    assert "other processes used at most 3 % of the CPU time" in text


def test_the_terminal_warns_with_the_figure_too(lean: ScenarioResult) -> None:
    assert "WARNING: latency: the machine was busy: other processes used 38 %" in print_text(
        change(lean, cpu=DISTURBED)
    )
    assert "WARNING" not in print_text(lean)


def print_text(result: ScenarioResult) -> str:
    """What ``bench run`` prints of a result."""
    text = StringIO()
    print_result(Console(file=text, width=200), result)
    return text.getvalue()


def test_an_older_file_warns_by_the_load_average(lean: ScenarioResult) -> None:
    older = change(lean, cpu=None)
    assert "was busy" not in read_page(older).text
    assert "the load average was 3.50 on 2 CPUs" in read_lead(change_place(older, load=3.5))


def test_what_passed_means_is_said_once_and_what_it_rests_on_in_each_section(
    lean: ScenarioResult,
) -> None:
    text = read_page(lean, lean).text
    rows = lean.runs[0].verdict.written
    assert text.count("“Passed” means that") == 1
    assert text.count(f"Passed: of {rows:,} rows written in 1 run none is missing") == 2
    failed = read_page(change(lean, problems=("latency: 1 missing",))).text
    assert "1 scenario: 1 failed ." in failed
    assert "Failed: see the problems below." in failed


@pytest.mark.parametrize("kind", ["missing", "invented", "wrong", "duplicates", "reordered"])
def test_what_the_meaning_of_passed_rules_out_is_what_fails(
    lean: ScenarioResult, kind: str
) -> None:
    verdict = lean.runs[0].verdict
    assert list_problems(change_run(lean, verdict=replace(verdict, **{kind: 1})).runs[0])
    assert not list_problems(change_run(lean, verdict=replace(verdict, superseded=9)).runs[0])


def test_every_figure_has_its_unit_in_words_and_equal_decimals(lean: ScenarioResult) -> None:
    first = lean.figures[0] | {"p99_s": 0.5, "cpu_s/100k": 7}
    second = first | {"rate/s": 500.0, "p99_s": 0.123, "cpu_s/100k": 68.25}
    page = read_page(change(lean, figures=(first, second)))
    folded, (head, *rows) = page.table_with("p99 latency seconds")
    assert not folded
    assert head[0] == "offered rows per second"
    assert [row[head.index("p99 latency seconds")] for row in rows] == ["0.500", "0.123"]
    folded, more = page.table_with("offered (rows per second)")
    assert ["CPU time per 100,000 rows (seconds)", "7.00", "68.25"] in more
    assert not {"p99_s", "cpu_s/100k", "peak_mb"} & set(page.text.split())


def test_a_figure_that_is_not_known_has_the_unit_of_its_name(lean: ScenarioResult) -> None:
    row = {"rate/s": 1.0, "wait_s": 0.25, "sent/s": 7.0, "heap_mb": 3.0}
    _, (head, cells) = read_page(change(lean, figures=(row,))).table_with("wait seconds")
    assert head[1:] == ["wait seconds", "sent per second", "heap megabytes"]
    assert cells[1:] == ["0.250", "7", "3.0"]


def test_six_columns_are_shown_and_the_others_folded(lean: ScenarioResult) -> None:
    page = read_page(lean)
    shown = [table for folded, table in page.tables if not folded]
    assert max(len(table[0]) for table in shown) == 6
    folded, more = page.table_with("offered (rows per second)")
    assert folded
    assert {"p90 latency (seconds)", "peak memory (megabytes)"} <= {row[0] for row in more}
    measured = [name for name, value in lean.figures[0].items() if value is not None]
    assert len(more) - 1 == len(measured) - 6


def test_rows_of_different_kinds_stand_in_different_tables(lean: ScenarioResult) -> None:
    rows = ({"rate/s": 1.0, "p99_s": 0.5}, {"rate/s": 2.0, "rows/s": 7})
    tables = [table for _, table in read_page(change(lean, figures=rows)).tables]
    assert [["offered rows per second", "p99 latency seconds"], ["1", "0.500"]] in tables
    assert [["offered rows per second", "delivered rows per second"], ["2", "7"]] in tables


def test_figures_beside_java_have_a_unit_in_every_row(lean: ScenarioResult) -> None:
    row = {"case": "backlog of 9", "figure": "client peak MB", "ours": 206.0, "java": 329.25}
    figures = ({**row, "ratio": 1.6},)
    java = change(lean, scenario="java", keys=("case", "figure"), figures=figures)
    _, table = read_page(java).table_with("Java")
    assert table[1] == ["client's peak memory (megabytes)", "206.0", "329.2", "1.60"]


def test_settings_that_differ_are_listed_with_their_defaults(lean: ScenarioResult) -> None:
    folded, table = read_page(lean).table_with("differs from the defaults")
    assert not folded
    assert table[1:] == [["rates", "2000", "100,500"]]
    same = change(lean, defaults=lean.settings)
    assert "All settings are the defaults." in read_page(same).text


def test_an_older_file_is_compared_with_the_defaults_of_this_release(lean: ScenarioResult) -> None:
    older = change(lean, defaults=None)
    _, table = read_page(older).table_with("differs from the defaults of this release")
    assert ["workload.seconds", "6", "30"] in table
    gone = change(older, scenario="a-scenario-that-is-no-more")
    assert "The defaults are not known." in read_page(gone).text


def test_the_page_is_well_formed_and_stands_alone(drawn: str) -> None:
    page = Page(drawn)
    assert not page.wrong
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    for outside in ("<script", "<link", "<img", "@import", "url(http", "<metadata"):
        assert outside not in drawn


def test_the_page_is_made_for_phones_and_for_the_dark(lean: ScenarioResult) -> None:
    text = report([lean])
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in text
    assert '<meta name="color-scheme" content="light dark">' in text
    assert "@media (prefers-color-scheme: dark)" in text


def test_no_chart_has_a_colour_that_a_dark_page_cannot_change(drawn: str) -> None:
    charts = re.findall(r"<svg.*?</svg>", drawn, re.DOTALL)
    assert len(charts) == 12
    for each in charts:
        assert not re.findall(r"(?:fill|stroke): *#\w+", each)


def test_axes_of_seconds_are_labelled_in_seconds(lean: ScenarioResult) -> None:
    points = tuple((10.0**n, 10.0 ** (n - 2)) for n in range(4))
    late = Chart(
        title="latency by interval_s",
        x="interval_s",
        y="seconds from the intended arrival",
        lines=(Line(label="p50_s", points=points), Line(label="p99_s", points=points)),
        log_y=True,
    )
    words = {word.strip() for word in read_page(change(lean, charts=(late,))).words}
    assert {"0.1 s", "1 s", "10 s", "poll interval (seconds)", "p99 latency"} <= words
    assert "latency by poll interval" in words


def test_a_chart_of_a_single_place_is_left_out(lean: ScenarioResult) -> None:
    one = Chart(title="x", x="rows", y="rows/s", lines=(Line(label="rows/s", points=((1, 2),)),))
    page = read_page(change(lean, charts=(one,)))
    assert "#latency-charts" not in page.links
    assert "#latency-figures" in page.links


def test_the_contents_lead_to_every_section(lean: ScenarioResult) -> None:
    page = read_page(lean, change(lean, scenario="backlog"), lean)
    for anchor in ("overview", "latency", "backlog", "latency-2", "latency-settings"):
        assert f"#{anchor}" in page.links
        assert anchor in page.ids


def test_markup_in_a_result_is_text(lean: ScenarioResult) -> None:
    notes = ("<b>5 < 6</b>",)
    text = report([change(lean, notes=notes, command="bench --set x='<b>'")])
    assert not Page(text).wrong
    assert notes[0] in Page(text).text
    assert "<b>" not in text


def test_a_file_keeps_what_others_used_and_the_defaults(
    newer: ScenarioResult, tmp_path: Path
) -> None:
    assert ScenarioResult.load(newer.save(tmp_path)) == newer


def test_older_and_newer_files_stand_on_one_page_and_are_compared(
    lean: ScenarioResult, tmp_path: Path
) -> None:
    disturbed = change(lean, cpu=DISTURBED).save(tmp_path / "new")
    out = tmp_path / "page.html"
    made = CliRunner().invoke(app, ["report", str(OLDER), str(disturbed), "--out", str(out)])
    assert made.exit_code == 0, made.output
    page = Page(out.read_text())
    assert not page.wrong
    assert {"latency", "latency-2"} <= set(page.ids)


def test_a_comparison_warns_of_the_result_of_a_busy_machine(
    lean: ScenarioResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    disturbed = change(lean, cpu=DISTURBED).save(tmp_path)
    compare(OLDER, disturbed)
    printed = capsys.readouterr().out
    assert "the second result of latency: the machine was busy" in printed
    assert "38 % of its CPU time" in printed
    assert "the first result" not in printed


def test_the_page_of_a_model_is_well_formed_too() -> None:
    page = Page(render_page(chart(10, (1, 8, 64), Assumptions())))
    assert not page.wrong
    assert "20 nodes" in page.words

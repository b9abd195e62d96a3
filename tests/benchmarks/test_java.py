"""Side by side with the Java watcher: in a tiny size, and where there is no Java."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.compiled import MissingToolsError
from benchmarks.conduct import conduct
from benchmarks.java_watcher import build
from benchmarks.pages.report import report
from benchmarks.result import ScenarioResult
from benchmarks.scenarios import find_scenario, java
from benchmarks.scenarios.java import INTERVAL_MIN, PollCost, choose_equal_interval
from benchmarks.screen import print_result

TINY = (
    "interval=0.2",
    "shards=4",
    "workload.rows=200",
    "workload.seconds=2",
    "mutations=10",
    "sizes=2500",
    "rates=200",
    "equal_seconds=2",
    "equal_rows=300",
    "equal_limit=100",
    "equal_cost_rates=200",
)


def there_are_tools() -> bool:
    try:
        build.tools()
    except MissingToolsError:
        return False
    return True


def render_text(result: ScenarioResult) -> str:
    text = io.StringIO()
    print_result(Console(file=text, width=100), result)
    return text.getvalue()


def test_without_a_jdk_and_maven_it_is_skipped_and_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = conduct(find_scenario("java"))
    assert result.outcome == "skipped"
    assert not result.runs
    assert "a JDK (javac) and Maven (mvn) not found on PATH" in result.skipped[0]
    assert "skipped: a JDK (javac) and Maven" in render_text(result)
    assert "s, skipped" in render_text(result)
    assert "skipped" in report([result])


def test_a_jdk_alone_is_not_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    compiler = tmp_path / "bin" / "javac"
    compiler.parent.mkdir()
    compiler.touch(0o755)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingToolsError, match=r"^Maven \(mvn\) not found"):
        build.tools()


def test_another_state_of_the_sources_is_built_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = build.folder()
    assert before.is_relative_to(tmp_path / "cache")
    for name in build.FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((build.SOURCES / name).read_bytes())
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    assert build.folder() == before
    (tmp_path / build.FILES[0]).write_text("<project/>")
    assert build.folder() != before


@pytest.mark.parametrize(
    ("above", "below", "times"),
    [(4.0, 2.0, 2.0), (1.0, 2.0, 0.5), (1.0, 0.0, None), (None, 1.0, None)],
)
def test_a_ratio_is_how_many_times_ours_is_better(
    above: float | None, below: float | None, times: float | None
) -> None:
    assert java.ratio(above, below) == times


@pytest.fixture(scope="module")
def result() -> ScenarioResult:
    return conduct(find_scenario("java"), TINY)


@pytest.mark.skipif(not there_are_tools(), reason="needs a JDK and Maven")
class TestSideBySide:
    """One tiny run of everything."""

    def test_both_deliver_what_was_written(self, result: ScenarioResult) -> None:
        assert result.outcome == "passed"
        systems = [run.plan.consumer.system for run in result.runs]
        assert systems == [*["watcher", "java"] * 3, "watcher", "watcher"]
        for run in result.runs[:4]:
            assert run.verdict.lost_nothing
            assert run.verdict.written == run.verdict.delivered + run.verdict.superseded > 0
        assert all(not run.verdict.invented and not run.verdict.wrong for run in result.runs)

    def test_the_same_rows_are_written_for_both(self, result: ScenarioResult) -> None:
        for ours, theirs in zip(result.runs[:6:2], result.runs[1:6:2], strict=True):
            assert ours.verdict.written == theirs.verdict.written

    def test_client_and_server_are_measured(self, result: ScenarioResult) -> None:
        for run in result.runs:
            assert run.client is not None
            assert run.client.cpu_running > 0
            assert run.queries is not None
            assert run.queries.rows_scanned >= run.verdict.delivered
            assert run.queries.queries > 0

    def test_the_table_has_both_and_their_ratio(self, result: ScenarioResult) -> None:
        rates = [row for row in result.figures if row["figure"] == "rows/s"]
        assert len(rates) == 1
        assert all(rates[0][name] for name in ("ours", "java", "ratio"))
        cases = {str(row["case"]) for row in result.figures}
        rate = "200 rows/s"
        equal = f"{rate}, equal client CPU"
        assert cases == {"backlog of 2,500", rate, "equal-timestamps", equal}
        assert "backlog of 2,500" in render_text(result)
        assert "client&#x27;s CPU time per 100,000 rows (seconds)" in report([result])


def test_the_interval_of_equal_cost_follows_from_what_polls_cost() -> None:
    # 10 ms of rows and 5 ms a poll: 15 ms at 1 s, 60 ms at 0.1 s.
    long, short = PollCost(1.0, 0.015), PollCost(0.1, 0.060)
    assert choose_equal_interval(long, short, 0.060) == 0.1
    assert choose_equal_interval(long, short, 0.035) == 0.2
    assert choose_equal_interval(long, short, 0.010) == 1.0
    assert choose_equal_interval(long, short, 10.0) == INTERVAL_MIN
    assert choose_equal_interval(long, PollCost(0.1, 0.010), 0.035) == INTERVAL_MIN

"""Scenarios on the embedded server in a tiny size, and consumers that are broken on purpose."""

from __future__ import annotations

import os
import shutil
from io import StringIO
from pathlib import Path

import pytest
from google.cloud.spanner_v1.database import Database
from rich.console import Console

from benchmarks.cli.results import pair_results
from benchmarks.comparison import compare_results, find_different_settings
from benchmarks.conduct import conduct
from benchmarks.pages.report import report
from benchmarks.reads.served_table import DRIVERS, is_installed
from benchmarks.result import ScenarioResult
from benchmarks.scenarios import find_scenario
from benchmarks.screen import print_result
from watcher.model.errors import ConfigurationError

TINY = ("interval=0.1", "rows=200", "seconds=1.5", "transactions=20", "mutations=10", "shards=4")
LATENCY = (*TINY, "rates=200")


@pytest.fixture(scope="module")
def result() -> ScenarioResult:
    return conduct(find_scenario("latency"), LATENCY)


def test_every_row_is_accounted_for(result: ScenarioResult) -> None:
    assert result.passed
    verdict = result.runs[0].verdict
    assert verdict.exact
    assert verdict.written == verdict.delivered + verdict.superseded > 0
    assert result.runs[0].aborted == 0


def test_the_processes_the_index_and_the_queries_are_measured(result: ScenarioResult) -> None:
    run = result.runs[0]
    assert set(run.processes) == {"watcher0", "writer0", "server"}
    assert all(u.cpu_seconds > 0 and u.peak_mb > 10 for u in run.processes.values())
    assert run.index_rows
    assert run.scanned is not None
    assert run.scanned.rows_scanned >= run.scanned.rows_returned > 0


def test_a_result_is_the_same_after_a_file(result: ScenarioResult, tmp_path: Path) -> None:
    assert ScenarioResult.load(result.save(tmp_path)) == result


def test_the_page_stands_alone(result: ScenarioResult) -> None:
    page = report([result])
    # A busy machine may have counted the index once in the second that this takes: no chart.
    telling = [counts for counts in (result.runs[0].index_rows,) if len(counts) > 1]
    assert page.count("<svg") == 5 + len(telling)
    assert "200 rows/s" in page
    assert result.command in page
    for outside in ("<script", "<link", "<img", 'src="', "@import"):
        assert outside not in page


def test_many_runs_are_shown_whole_on_a_narrow_screen(result: ScenarioResult) -> None:
    rows = [result.figures[0] | {"rate/s": 1_000_001 + number} for number in range(12)]
    console = Console(file=StringIO(), width=80)
    print_result(console, result.model_copy(update={"figures": rows}))
    assert isinstance(console.file, StringIO)
    text = console.file.getvalue()
    assert "…" not in text
    assert all(f"1,000,{number:03}" in text for number in range(1, 13))
    assert text.count("p99.9_s") > 1


def test_a_result_is_compared_with_itself(result: ScenarioResult, tmp_path: Path) -> None:
    rows = compare_results(result, result)
    assert {row.ratio for row in rows if row.first} == {1.0}
    assert find_different_settings(result, result) == {}
    result.save(tmp_path)
    assert [pair.scenario for pair, _ in pair_results(tmp_path, tmp_path)] == ["latency"]


def test_results_of_different_scenarios_are_not_compared(
    result: ScenarioResult, tmp_path: Path
) -> None:
    other = result.model_copy(update={"scenario": "backlog"})
    paths = result.save(tmp_path), other.save(tmp_path)
    with pytest.raises(ConfigurationError, match="no scenario in common"):
        pair_results(*paths)


def test_no_result_is_said_to_be_none(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="not a result of this release"):
        ScenarioResult.load(tmp_path / "x.json")
    with pytest.raises(ConfigurationError, match="name one that exists"):
        ScenarioResult.load(tmp_path / "y.json")


def test_one_row_lost_in_a_hundred_thousand_fails_the_scenario() -> None:
    result = conduct(find_scenario("backlog"), ["sizes=100000", "shards=4", "drop=100000"])
    assert not result.passed
    assert result.runs[0].verdict.missing == 1
    assert "1 missing" in result.problems[0]


def test_one_row_twice_fails_the_scenario() -> None:
    result = conduct(find_scenario("backlog"), ["sizes=2000", "shards=4", "duplicate=2000"])
    assert result.problems == ("backlog of 2,000: of 2,000 rows written, 1 duplicates",)


def test_a_callback_that_is_late_by_200_ms_is_late_in_every_row() -> None:
    result = conduct(find_scenario("latency"), [*LATENCY, "late=0.2"])
    assert result.passed
    assert result.runs[0].since_commit.curve[0][1] >= 0.199


def test_a_server_that_stands_still_for_two_seconds_shows_in_the_last_percentile() -> None:
    result = conduct(find_scenario("latency"), [*LATENCY, "seconds=3", "after=0.5", "stall=2"])
    assert result.passed
    assert result.runs[0].since_intended.p999 >= 1.8


def test_dml_from_two_writers_to_two_tables_arrives_whole() -> None:
    more = ("dml=true", "writers=2", "tables=2", "keys=zipf", "clear_every=0.5", "watchers=2")
    result = conduct(find_scenario("latency"), [*LATENCY, *more])
    assert result.passed
    assert {"watcher0", "watcher1", "writer0", "writer1"} <= set(result.runs[0].processes)


@pytest.mark.parametrize("capture", ["change-stream", "push"])
def test_a_change_stream_delivers_every_version(capture: str) -> None:
    """Few keys: most versions are replaced within a window."""
    more = (f"capture={capture}", "tables=2", "watchers=2", "rows=20", "inserts=0.2")
    result = conduct(find_scenario("latency"), [*LATENCY, *more])
    assert result.passed
    verdict = result.runs[0].verdict
    assert verdict.written == verdict.delivered > 0
    assert verdict.superseded == 0


def test_without_an_index_the_table_is_scanned() -> None:
    result = conduct(find_scenario("index"), [*TINY, "rows=2000", "seconds=2"])
    assert result.passed
    scanned = {row["index"]: row["scanned/row"] for row in result.figures}
    assert list(scanned) == ["none", "plain", "null-filtered", "no-shard", "forced", "storing"]
    assert float(str(scanned["none"])) > 10 * float(str(scanned["forced"]))
    assert "rows scanned per row delivered" in report([result])


SPARK = (*TINY, "partitions=2", "triggers=0", "seconds=4")


@pytest.mark.spark
def test_what_spark_writes_into_files_is_verified() -> None:
    result = conduct(find_scenario("spark"), [*SPARK, "sinks=parquet", "backlogs=", "warm_up=1"])
    assert result.passed
    assert [(row["load"], row["sink"]) for row in result.figures] == [("steady", "parquet")]
    run = result.runs[0]
    assert run.verdict.exact
    assert run.verdict.written == run.verdict.delivered + run.verdict.superseded
    assert 0 < run.since_commit.count < run.verdict.delivered
    assert run.processes["spark"].peak_mb > 100


@pytest.mark.spark
def test_a_change_stream_through_spark_delivers_every_version() -> None:
    """Few keys: most versions are replaced within a window."""
    more = ("sinks=foreach-batch", "backlogs=1000", "warm_up=0", "capture=change-stream")
    result = conduct(find_scenario("spark"), [*SPARK, *more, "rows=20"])
    assert result.passed
    assert [row["load"] for row in result.figures] == ["steady", "backlog of 1,000"]
    assert all(run.verdict.written == run.verdict.delivered > 0 for run in result.runs)


def test_decoding_is_compared_with_the_client() -> None:
    result = conduct(find_scenario("decode"), ["values=6000", "runs=1", "served_rows=500"])
    assert result.passed
    own = [row for row in result.figures if not any(each in str(row["table"]) for each in DRIVERS)]
    assert [(row["table"], row["rows"]) for row in own] == [
        ("narrow", 3_000),
        ("wide", 200),
        ("served text, spanner-watcher", 500),
        ("served bytes, spanner-watcher", 500),
    ]
    assert all(float(str(row["columns_rows/s"])) > 0 for row in result.figures)


def test_values_of_each_type_are_measured_beside_libraries_that_give_the_same() -> None:
    chosen = ["kinds=BYTES of 8,FLOAT64 of 17 digits", "paths=result,json", "rows=500", "runs=1"]
    result = conduct(find_scenario("values"), chosen)
    assert [(row["path"], row["value"], row["nulls"]) for row in result.figures] == [
        (path, kind, nulls)
        for path in ("result", "json")
        for kind in ("BYTES of 8", "FLOAT64 of 17 digits")
        for nulls in (0.0, 0.5)
    ]
    assert all(float(str(row["ours_ns"])) > 0 for row in result.figures)
    assert result.figures[0]["library"]  # which one is best is measured, and no promise
    assert "polars" in str(result.figures[-2]["inexact"])  # it writes NaN in another way


@pytest.mark.parametrize("driver", DRIVERS)
def test_native_drivers_are_measured_where_they_are_installed(driver: str) -> None:
    result = conduct(find_scenario("decode"), ["tables=", "runs=1", "served_rows=500"])
    tables = {row["table"]: row["rows"] for row in result.figures}
    if is_installed(driver):
        assert tables[f"served text, {driver}"] == tables[f"served bytes, {driver}"] == 500
    else:
        assert f"{driver} is not installed: pip install {driver}" in result.skipped


@pytest.mark.spark
def test_snapshots_into_spark_are_measured() -> None:
    chosen = ["rows=500", "columns=all,short", "max_partitions=0,2", "warm_up=0", "runs=1"]
    result = conduct(find_scenario("snapshot"), chosen)
    assert result.passed, result.problems
    assert [(row["columns"], row["max_partitions"]) for row in result.figures] == [
        ("all", 0),
        ("all", 2),
        ("short", 0),
        ("short", 2),
    ]
    assert all(float(str(row["client_cpu_s_100k"])) > 0 for row in result.figures)


@pytest.mark.spark
def test_spark_s_connector_is_measured_where_it_is_built() -> None:
    jar = os.environ.get("SPANNER_CONNECTOR_JAR")
    chosen = ["rows=500", "kinds=five,count", "rounds=1", "first_rounds=1"]
    result = conduct(find_scenario("connector"), chosen)
    assert result.passed, result.problems
    if jar is None:
        assert len(result.skipped) == 1
        assert "Spark's connector for Spanner" in result.skipped[0]
        assert not result.figures
    else:
        first = ["session made", "first action", "start to rows"]
        assert [row["read"] for row in result.figures] == [*first, "five", "count"]


@pytest.mark.spark
def test_each_phase_of_a_job_up_to_its_first_rows_is_measured() -> None:
    result = conduct(find_scenario("first-rows"), ["systems=ours", "rows=100", "rounds=1"])
    assert result.passed, result.problems
    assert [(row["job"], row["system"]) for row in result.figures] == [
        (job, system) for job in ("stream", "batch") for system in ("rate", "ours")
    ]
    for row in result.figures:
        phases = ("imports", "session", "register", "plan", "first")
        spent = sum(float(str(row[f"{phase}_s"])) for phase in phases)
        assert spent == pytest.approx(float(str(row["to_first_rows_s"])), abs=0.1)


@pytest.mark.spark
def test_micro_batches_of_several_tables_with_few_rows_take_one_task() -> None:
    chosen = ["sources=python,tables", "rows=5", "tables=3", "batches=2", "warm_up=1", "rounds=1"]
    result = conduct(find_scenario("micro-batches"), chosen)
    assert result.passed, result.problems
    assert [(row["source"], row["tasks"]) for row in result.figures] == [
        ("python", 1),
        ("tables", 1),
    ]


@pytest.mark.spark
def test_the_cost_of_tasks_is_measured_by_how_workers_start() -> None:
    result = conduct(find_scenario("tasks"), ["tasks=2", "rounds=1"])
    assert result.passed, result.problems
    assert [row["workers"] for row in result.figures] == [
        "spark alone",
        "PYSPARK_PYTHON set",
        "not set",
        "watcher.spark_daemon",
    ]


@pytest.mark.spark
def test_the_memory_of_reads_is_measured_by_the_size_of_the_table() -> None:
    result = conduct(find_scenario("memory"), ["rows=500,12000"])
    assert result.passed, result.problems
    assert [row["rows"] for row in result.figures] == [500, 12_000]
    for name in ("driver_mb", "jvm_mb", "worker_mb"):
        assert all(float(str(row[name])) > 10 for row in result.figures)


def test_a_folder_without_a_spark_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="has no PySpark"):
        conduct(find_scenario("tasks"), [f"spark={tmp_path}"])


def test_a_jar_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"jar=nowhere\.jar does not exist"):
        conduct(find_scenario("connector"), ["jar=nowhere.jar"])


def test_every_form_of_spark_is_measured() -> None:
    result = conduct(find_scenario("forms"), ["rows=300", "read_rows=3000", "runs=1"])
    assert result.passed
    assert len({row["form"] for row in result.figures}) == 10
    for name in ("shaped_rows/s", "read_rows/s", "wall_rows/s"):
        assert all(float(str(row[name])) > 0 for row in result.figures)


def test_every_sink_is_measured_and_its_messages_are_counted() -> None:
    pytest.importorskip("confluent_kafka", reason="needs the extra [kafka]")
    result = conduct(find_scenario("sinks"), ["rows=2000", "runs=1", "envelopes=plain"])
    assert result.passed
    assert [row["sink"] for row in result.figures] == [
        "callback",
        "kafka, plain",
        "kafka-transactions, plain",
    ]
    assert all(float(str(row["rows/cpu_s"])) > 0 for row in result.figures)


def test_the_server_is_measured_in_memory_and_on_disk() -> None:
    host = os.environ.get("SPANNER_EMULATOR_HOST")
    result = conduct(find_scenario("server"), ["seconds=0.5", "rows=1000"])
    assert result.passed
    memory, disk = result.figures
    assert (memory["storage"], disk["storage"]) == ("memory", "disk")
    assert memory["poll_scanned"] == memory["polled_rows"] == 135
    assert memory["commits/s"]
    assert disk["bytes/row"]
    assert os.environ.get("SPANNER_EMULATOR_HOST") == host


@pytest.mark.skipif(shutil.which("go") is None, reason="there is no Go here")
def test_the_server_is_measured_with_the_go_client() -> None:
    result = conduct(
        find_scenario("server"), ["client=go", "storages=memory", "seconds=0.5", "rows=1000"]
    )
    (memory,) = result.figures
    assert memory["client"] == "go"
    assert memory["commits/s"]
    assert memory["read_p50_ms"]
    assert memory["scanned_rows/s"]
    assert memory["poll_scanned"] == memory["polled_rows"] == 135


def test_without_go_its_client_is_skipped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    result = conduct(find_scenario("server"), ["client=go"])
    assert result.outcome == "skipped"
    assert "go not found on PATH" in result.skipped[0]


def test_the_server_is_measured_on_no_other_database() -> None:
    with pytest.raises(ConfigurationError, match="embedded server only"):
        conduct(find_scenario("server"), database="projects/p1/instances/i1/databases/d1")


def test_captures_are_compared_at_the_same_load() -> None:
    result = conduct(find_scenario("captures"), TINY)
    assert result.passed
    assert [row["capture"] for row in result.figures] == ["poll", "change-stream", "push"]
    assert len({run.verdict.written for run in result.runs}) == 1


def test_a_change_that_a_stream_loses_fails_the_scenario() -> None:
    result = conduct(find_scenario("backlog"), ["sizes=2000", "capture=change-stream", "drop=2000"])
    assert result.problems == ("backlog of 2,000: of 2,000 rows written, 1 missing",)


def test_a_steady_load_in_steps_finds_the_rate_that_is_kept_up_with() -> None:
    result = conduct(
        find_scenario("sustained"),
        [*TINY, "writers=1", "until=40", "steps=2", "seconds=4", "further=0"],
    )
    assert result.passed
    assert [row["offered/s"] for row in result.figures] == [200, 400]
    assert "sustained rate" in result.notes[0]


def test_while_everything_is_kept_up_with_the_load_rises_further() -> None:
    more = ("writers=1", "until=40", "profile=ramp", "steps=2", "seconds=4", "late_max=30")
    result = conduct(find_scenario("sustained"), [*TINY, *more, "further=1"])
    assert result.passed
    assert [row["offered/s"] for row in result.figures] == [250, 350, 500, 700]
    assert "700 rows/s (the highest that was offered)" in result.notes[0]


@pytest.mark.parametrize("dml", ["true", "false"])
def test_rows_that_were_marked_as_processed_come_again_when_they_change(dml: str) -> None:
    more = ("values=0.3", "strategy=processed", "rows=50", "inserts=0.1", f"dml={dml}")
    result = conduct(find_scenario("clearing"), [*TINY, *more, "seconds=3"])
    assert result.passed
    run = result.runs[0]
    assert min(size for _, size in run.index_rows) < run.verdict.delivered


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("watchers", ("values=2", "tables=2")),
        ("shard-groups", ("values=2",)),
        ("interval", ("values=0.2",)),
    ],
)
def test_a_knob_of_the_watcher_is_swept(name: str, more: tuple[str, ...]) -> None:
    result = conduct(find_scenario(name), [*TINY, *more])
    assert result.passed
    assert len(result.figures) == 1


@pytest.mark.parametrize("capture", ["poll", "change-stream"])
def test_a_database_that_was_there_is_left_as_it_was(capture: str, database: Database) -> None:
    database.update_ddl(["CREATE TABLE Other (Id INT64) PRIMARY KEY (Id)"]).result(60)
    before = list(database.list_tables())
    result = conduct(find_scenario("latency"), [*LATENCY, f"capture={capture}"], database.name)
    assert result.passed
    assert "server" not in result.runs[0].processes
    database.reload()
    assert len(database.ddl_statements) == 1
    assert len(list(database.list_tables())) == len(before)


def test_the_embedded_server_alone_can_stand_still() -> None:
    with pytest.raises(ConfigurationError, match="invalid setting"):
        conduct(find_scenario("latency"), ["stall"])

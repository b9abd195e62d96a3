"""The scenarios of scale in a tiny size, and the model that is checked against them."""

from __future__ import annotations

import pytest

from benchmarks.conduct import conduct
from benchmarks.model import Assumptions, Setup, count_look_queries, estimate_stream_window
from benchmarks.model import forecast as forecast_setup
from benchmarks.result import ScenarioResult
from benchmarks.scale_model import describe, predict
from benchmarks.scenario import number
from benchmarks.scenarios import find_scenario, scale_partitions
from benchmarks.simulated_stream import churn_partitions, simulate
from watcher.captures.poll_tables import TABLES_PER_QUERY

FAST = ("interval=0.1", "shards=4")


def list_column(result: ScenarioResult, column: str) -> list[float]:
    return [value for row in result.figures if (value := number(row[column])) is not None]


def test_what_idle_tables_cost_is_measured_beside_the_forecast() -> None:
    values = f"values=3,{TABLES_PER_QUERY + 3}"
    settings = (*FAST, values, "seconds=2", "idle=1", "changing=2", "transactions=20")
    result = conduct(find_scenario("scale-tables"), settings)
    assert result.passed
    assert [run.plan.workload.tables for run in result.runs] == [3, TABLES_PER_QUERY + 3]
    assert {run.verdict.exact for run in result.runs} == {True}
    assert list_column(result, "idle_queries")[1] > list_column(result, "idle_queries")[0] > 0
    assert list_column(result, "missing") == [0, 0]
    assert all(cpu > 0 for cpu in list_column(result, "start_cpu_s"))
    assert any(note.startswith("idle_queries at 53 tables: predicted 2") for note in result.notes)


def test_a_table_on_disk_is_filled_with_rows_that_no_poll_sees() -> None:
    settings = (*FAST, "values=500,5000", "seconds=2", "warm_up=0", "transactions=20")
    result = conduct(find_scenario("scale-rows"), (*settings, "mutations=10"))
    assert result.passed
    assert {run.verdict.exact for run in result.runs} == {True}
    assert all(run.verdict.delivered > 0 for run in result.runs)
    assert all(scanned < 5 for scanned in list_column(result, "scanned/row"))
    assert any(note.startswith("staleness of bench model, 500 rows") for note in result.notes)


def test_instances_that_share_a_consumer_deliver_each_row_once() -> None:
    settings = (*FAST, "values=1,2", "parts=2", "seconds=2", "warm_up=0", "transactions=20")
    result = conduct(find_scenario("scale-instances"), settings)
    assert result.passed
    assert {run.verdict.exact for run in result.runs} == {True}
    assert [len(run.processes) for run in result.runs] == [3, 4]  # the server and a writer, too
    assert all(run.verdict.delivered > 0 for run in result.runs)
    assert any(note.startswith("queries at 2 instances: predicted") for note in result.notes)


def test_every_partition_of_a_simulated_stream_is_read_once() -> None:
    result = conduct(find_scenario("scale-partitions"), ("values=10,20,40", "churn=0.5"))
    assert result.passed
    assert list_column(result, "slices") == [10, 20, 40]
    assert list_column(result, "queries") == [n + 1 for n in list_column(result, "in_window")]
    assert all(b > a for a, b in zip((10, 20, 40), list_column(result, "in_window"), strict=True))


def test_a_partition_that_is_not_read_fails_the_scenario() -> None:
    assert scale_partitions.check_queries(10, 11, 10, 0) == ""
    for wrong in ((10, 10, 10, 0), (10, 11, 11, 0), (10, 11, 10, 1)):
        assert "partitions were read by" in scale_partitions.check_queries(*wrong)


def test_children_begin_where_their_parents_end() -> None:
    partitions = churn_partitions(20, 0.5, scale_partitions.WINDOW, seed=3)
    by_token = {each.token: each for each in partitions}
    children = [each for each in partitions if each.parents]
    assert {len(child.parents) for child in children} == {1, 2}
    for child in children:
        assert {by_token[parent].ended for parent in child.parents} == {child.started}
    assert len(simulate(partitions, scale_partitions.WINDOW).answers) == len(partitions) + 1


def test_forecasts_follow_the_law_that_they_name() -> None:
    assert predict("line", [(20, 5.0), (200, 14.0)], 2_000) == pytest.approx(104.0)
    assert predict("flat", [(20, 5.0)], 2_000) == 5.0
    assert predict(count_look_queries, [], 2_000) == 40
    assert describe("x", 110.0, 100.0) == "x: predicted 110, measured 100, error +10%"
    assert describe("x", 1.0, 0.0).endswith("error -")


def test_idle_tables_cost_seeks_and_time() -> None:
    one = Setup(nodes=100, writes=10_000, shards=64)
    many = Setup(nodes=100, writes=10_000, shards=64, tables=2_000)
    alone, all_of_them = (forecast_setup(setup, Assumptions()) for setup in (one, many))
    assert all_of_them.carried < alone.carried
    assert all_of_them.total_busy > alone.total_busy
    assert all_of_them.staleness > alone.staleness
    assert forecast_setup(one, Assumptions()) == alone


def test_partitions_are_read_side_by_side_in_a_share_of_the_time() -> None:
    assumptions = Assumptions(seek_seconds=0.01)
    assert estimate_stream_window(10_000, 1, assumptions) == pytest.approx(100.01)
    assert estimate_stream_window(10_000, 100, assumptions) == pytest.approx(1.01)

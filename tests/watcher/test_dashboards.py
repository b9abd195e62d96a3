"""The Grafana dashboard and the alert rules load, and ask for metrics that the page serves."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database
from prometheus_client import generate_latest

from watcher.consumers.positions import TABLE
from watcher.consumers.states import State
from watcher.overview.observer import Observer
from watcher.page.feed import Feed
from watcher.runners.metrics import Metrics

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "spanner-watcher.rules.yml"
DASHBOARD = DEPLOY / "grafana" / "spanner-watcher.json"
METRIC = re.compile(r"\bspanner_watcher_\w+")
LABEL = re.compile(r"(\w+)=~?\"([^\"]*)\"")
PROMTOOL = shutil.which("promtool")


@pytest.fixture
def served(singers: Database) -> set[str]:
    """The names of the metrics that the page serves."""
    feed = Feed(Observer(singers, address_of(singers), TABLE, 0.0).read, 5.0)
    feed.read()
    text = generate_latest(feed.registry).decode()
    return set(re.findall(r"^# TYPE (\w+)", text, re.M))


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text())["panels"]
    return found


def load_rules() -> list[dict[str, Any]]:
    """The rules, read by PyYAML where it is installed."""
    yaml = pytest.importorskip("yaml")
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    rules: list[dict[str, Any]] = group["rules"]
    return rules


def list_expressions() -> Iterator[str]:
    """What panels and rules ask for."""
    for panel in panels():
        yield from (target["expr"] for target in panel["targets"])
    # Without PyYAML, too: an expression goes up to the next member of its rule.
    yield from re.findall(r"expr: (.*?)\n        \w+:", RULES.read_text(), re.DOTALL)


def test_every_metric_that_is_asked_for_is_served(served: set[str]) -> None:
    expressions = list(list_expressions())
    asked = {name for text in expressions for name in METRIC.findall(text)}
    assert len(expressions) >= 20
    assert asked <= served
    shown = set(METRIC.findall(DASHBOARD.read_text() + RULES.read_text()))
    assert served - shown <= {
        "spanner_watcher_page_reads_total",
        "spanner_watcher_page_reads_created",
        "spanner_watcher_consumer_delivered_rows",
        "spanner_watcher_consumer_last_error_seconds",
    }


def test_the_page_and_a_watcher_may_be_scraped_both(served: set[str]) -> None:
    text = generate_latest(Metrics("me").registry).decode()
    assert served.isdisjoint(re.findall(r"^# TYPE (\w+)", text, re.M))


def test_states_that_are_asked_for_exist() -> None:
    for text in list_expressions():
        for label, value in LABEL.findall(text):
            if label == "state":
                assert set(value.split("|")) <= set(State)


def test_the_dashboard_is_one_that_grafana_loads() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert dashboard["schemaVersion"] >= 36
    assert dashboard["uid"] == "spanner-watcher"
    assert len({panel["id"] for panel in panels()}) == len(panels())
    variables = {each["name"] for each in dashboard["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", DASHBOARD.read_text())) - {"__all"}
    assert used == variables == {"datasource", "consumer"}
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        assert panel["title"]
        assert panel["targets"]


def test_the_rules_are_complete() -> None:
    rules = load_rules()
    assert len({rule["alert"] for rule in rules}) == len(rules) >= 9
    for rule in rules:
        assert rule["expr"]
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert {"summary", "description"} <= rule["annotations"].keys()


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_prometheus_accepts_the_rules() -> None:
    assert PROMTOOL is not None
    subprocess.run([PROMTOOL, "check", "rules", str(RULES)], check=True, timeout=60)


CASES = """
rule_files: [{rules}]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
      - series: 'spanner_watcher_lost_in_seconds{{consumer="stuck",table="Singers"}}'
        values: '3600-60x60'
      - series: 'spanner_watcher_consumer_alive{{consumer="stuck"}}'
        values: '0x60'
      - series: 'spanner_watcher_consumer_state{{consumer="stuck",state="RUNNING"}}'
        values: '1x60'
      - series: 'spanner_watcher_consumer_state{{consumer="ended",state="STOPPED"}}'
        values: '1x60'
      - series: 'spanner_watcher_consumer_alive{{consumer="ended"}}'
        values: '0x60'
      - series: 'spanner_watcher_exact_for_seconds{{consumer="ended",table="Singers"}}'
        values: '-5000x60'
    promql_expr_test:
      - expr: count by (alertname, consumer) (ALERTS{{alertstate="firing"}})
        eval_time: 30m
        exp_samples:
          - labels: '{{alertname="SpannerWatcherConsumerGone", consumer="stuck"}}'
            value: 1
          - labels: '{{alertname="SpannerWatcherRecordsSoonLost", consumer="stuck"}}'
            value: 1
"""


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
def test_alerts_fire_for_a_consumer_that_is_stuck_and_for_none_that_has_ended(
    tmp_path: Path,
) -> None:
    assert PROMTOOL is not None
    cases = tmp_path / "cases.yml"
    cases.write_text(CASES.format(rules=RULES))
    subprocess.run([PROMTOOL, "test", "rules", str(cases)], check=True, timeout=60)

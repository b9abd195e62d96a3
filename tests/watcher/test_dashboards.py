"""The Grafana dashboard and the alert rules load, and ask for metrics that the page serves.

Judges from outside, where they are installed: Grafana's own schema of dashboards (its Foundation
SDK), promtool, and a Prometheus that scrapes the page, loads the rules and answers every panel.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fixtures.bad_days import CASES, overview_of
from fixtures.browser import wait_until
from fixtures.consumers import consumers_of, watcher_of, write, write_both
from fixtures.pages import serve_page
from fixtures.singers import address_of
from fixtures.watcher_threads import run_in_thread
from google.cloud.spanner_v1.database import Database
from prometheus_client import CollectorRegistry, generate_latest

from emulator.ports import find_port
from watcher.consumers.positions import TABLE
from watcher.consumers.states import State
from watcher.overview.conditions import LEVELS, Condition, Level
from watcher.overview.metrics import OverviewCollector
from watcher.overview.observer import Observer
from watcher.overview.page.feed import Feed
from watcher.overview.values import Overview
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.owner import Owner
from watcher.replica.cuts.proofs import ProofFiles, ProvedRange, TableProof
from watcher.runners.metrics import Metrics

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "spanner-watcher.rules.yml"
RUNBOOK = DEPLOY.parent / "docs" / "troubleshooting.md"
URGENT = (Level.TROUBLE, Level.ATTENTION)
DASHBOARD = DEPLOY / "grafana" / "spanner-watcher.json"
METRIC = re.compile(r"\bspanner_watcher_\w+")
LABEL = re.compile(r"(\w+)=~?\"([^\"]*)\"")
PROMTOOL = shutil.which("promtool")
PROMETHEUS = shutil.which("prometheus")
SECONDS = 60
STARTING = 503
"""What Prometheus answers until it is ready."""


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
            if label == "condition":
                assert set(value.split("|")) <= set(Condition)


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


ALERTS = {
    Condition.LOSING_DATA: ("SpannerWatcherRecordsLost", "0m"),
    Condition.LOSES_DATA_SOON: ("SpannerWatcherRecordsSoonLost", "5m"),
    Condition.FAILED: ("SpannerWatcherConsumerFailed", "5m"),
    Condition.NOT_ALIVE: ("SpannerWatcherConsumerGone", "2m"),
    Condition.FAILING: ("SpannerWatcherConsumerFails", "5m"),
    Condition.WAITING_FOR_INDEX: ("SpannerWatcherConsumerWaitsForIndex", "5m"),
    Condition.STANDING_STILL: ("SpannerWatcherConsumerStandsStill", "5m"),
    Condition.HAS_DEAD_LETTERS: ("SpannerWatcherDeadLetters", "5m"),
    Condition.BEHIND: ("SpannerWatcherConsumerLags", "15m"),
    Condition.PAUSED: ("SpannerWatcherConsumerPaused", "60m"),
    Condition.DRAINING: ("SpannerWatcherConsumerDrains", "60m"),
}
"""What fires for a condition, and after how long."""
FIRING = 'count by (alertname, consumer) (ALERTS{alertstate="firing"})'


def list_series(overview: Overview) -> list[dict[str, str]]:
    """What the page serves of an overview, as series of promtool that begin after ten minutes."""
    registry = CollectorRegistry()
    registry.register(OverviewCollector(lambda: overview))
    return [
        {
            "series": f"{sample.name}{{{write_labels(sample.labels)}}}",
            "values": f"_x10 {sample.value}x90",
        }
        for family in registry.collect()
        for sample in family.samples
    ]


def write_labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f'{name}="{value}"' for name, value in labels.items())


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed")
@pytest.mark.parametrize("condition", Condition)
def test_each_condition_fires_its_alert_and_no_other(condition: Condition, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    assert PROMTOOL is not None
    name, wait = ALERTS.get(condition, (None, "60m"))
    sample = {"labels": f'{{alertname="{name}", consumer="me"}}', "value": 1}
    minutes = 10 + int(wait.removesuffix("m"))
    after = [
        {"expr": FIRING, "eval_time": f"{minutes + 1}m", "exp_samples": [sample] if name else []}
    ]
    before = [{"expr": FIRING, "eval_time": f"{minutes - 1}m", "exp_samples": []}]
    case = {
        "interval": "1m",
        "input_series": list_series(overview_of([CASES[condition]], ["Singers"])),
        "promql_expr_test": before + after,
    }
    file = tmp_path / "cases.yml"
    rules = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [case]}
    file.write_text(yaml.safe_dump(rules))
    subprocess.run([PROMTOOL, "test", "rules", str(file)], check=True, timeout=60)


def test_whoever_has_to_do_something_is_alerted() -> None:
    urgent = {each for each in Condition if LEVELS.get(each, Level.TROUBLE) in URGENT}
    assert set(ALERTS) == urgent
    rules = {rule["alert"] for rule in load_rules()}
    assert {name for name, _ in ALERTS.values()} <= rules


def test_each_alert_leads_to_a_section_that_says_what_to_do() -> None:
    text = RUNBOOK.read_text().partition("\n## Alerts\n")[2].partition("\n## ")[0]
    sections = dict(re.findall(r"^### (\w+)\n\n(.*?)(?=^### |\Z)", text, re.M | re.DOTALL))
    rules = load_rules()
    assert list(sections) == [rule["alert"] for rule in rules]
    for rule in rules:
        link = f"docs/troubleshooting.md#{rule['alert'].lower()}"
        assert rule["annotations"]["runbook_url"] == link
        assert len(sections[rule["alert"]]) > 100


# Grafana's own schema.


def find_unknown(written: object, read: object, place: str = "") -> Iterator[str]:
    """Where what Grafana's types have read differs from what is in the file."""
    if isinstance(written, dict):
        for name, value in written.items():
            if not isinstance(read, dict) or name not in read:
                yield f"{place}/{name} is unknown"
            else:
                yield from find_unknown(value, read[name], f"{place}/{name}")
    elif isinstance(written, list):
        if not isinstance(read, list) or len(written) != len(read):
            yield f"{place} is another list"
        else:
            for number, pair in enumerate(zip(written, read, strict=True)):
                yield from find_unknown(*pair, f"{place}[{number}]")
    elif written != read:
        yield f"{place} is {read!r}"


def read_as_grafana(dashboard: dict[str, Any]) -> Any:
    """The dashboard through Grafana's types and back; what they do not know is lost on the way."""
    models = pytest.importorskip(
        "grafana_foundation_sdk.models.dashboard", reason="needs grafana-foundation-sdk"
    )
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    plugins.register_default_plugins()
    return json.loads(encoder.JSONEncoder().encode(models.Dashboard.from_json(dashboard)))


def test_grafanas_own_types_know_everything_in_the_dashboard() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    assert list(find_unknown(dashboard, read_as_grafana(dashboard))) == []


def test_grafanas_own_types_find_what_is_misspelt() -> None:
    dashboard = json.loads(DASHBOARD.read_text())
    dashboard["panels"][0]["options"]["colourMode"] = "value"
    dashboard["panels"][0]["targets"][0]["legend"] = "running"
    assert list(find_unknown(dashboard, read_as_grafana(dashboard))) == [
        "/panels[0]/targets[0]/legend is unknown",
        "/panels[0]/options/colourMode is unknown",
    ]


# A real Prometheus.


@pytest.fixture
def busy(music: Database) -> Iterator[Database]:
    """A database in which every metric has a value: a consumer that runs, one of a change stream,
    and one in the middle of a backfill."""
    music.update_ddl(["CREATE CHANGE STREAM Everything FOR ALL"]).result(SECONDS)
    consumers_of(music).create()
    write(music, *range(20))
    stream = {"capture": "change-stream", "stream": {"name": "Everything"}, "start": "latest"}
    watcher_of(music, [], consumer="streams", **stream).run_once()
    filling = watcher_of(
        music, [], consumer="fills", start="latest", backfill=["Singers"], backfill_rows=2
    )
    filling.on_change(lambda change: filling.stop())
    filling.run_once()
    with run_in_thread(watcher_of(music, [], consumer="polls")):
        write_both(music, 1)
        yield music


CONFIGURATION = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: spanner-watcher
    static_configs: [{{targets: ["{target}"]}}]
"""


class PrometheusServer:
    """Its HTTP API."""

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/api/v1/"

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer; None while nothing answers."""
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"{self._address}{path}?{query}", timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == STARTING:
                return None
            raise AssertionError(f"{path} {parameters}: {error.read().decode()}") from error
        except OSError:
            return None

    def count_series(self, expression: str) -> int:
        """How many series an expression returns now."""
        answer = self.ask("query", query=expression)
        return len(answer["result"]) if answer is not None else 0


@contextmanager
def run_prometheus(folder: Path, target: str) -> Iterator[PrometheusServer]:
    """One that scrapes a page every second and has loaded the rules."""
    assert PROMETHEUS is not None
    port = find_port()
    file = folder / "prometheus.yml"
    file.write_text(CONFIGURATION.format(rules=RULES, target=target))
    arguments = (f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}")
    log = folder / "prometheus.log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [PROMETHEUS, *arguments, f"--web.listen-address=127.0.0.1:{port}"], stderr=output
        ) as process,
    ):
        server = PrometheusServer(port)
        try:
            wait_until(lambda: server.count_series("up == 1"), f"a scrape; see {log}")
            yield server
        finally:
            process.terminate()


def fill_in(expression: str) -> str:
    """An expression as Grafana sends it when all consumers are chosen."""
    return expression.replace("$consumer", ".*")


def prove_copy(database: Database, folder: Path) -> str:
    """A replica in which the copy of one table is proved, as ``verify --incremental`` leaves it."""
    folder.mkdir()
    Manifest(str(folder)).claim(Owner(address_of(database).path, "polls", "delta"))
    parts = (ProvedRange(None, 20, 1_700_000_000_000_000),)
    end = parts[0].at
    proof = TableProof(end, 1, end, (), end, 86_400.0, parts)
    ProofFiles(str(folder)).write("Singers", proof)
    return f"delta:{folder}"


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed")
def test_a_real_prometheus_answers_every_panel_and_evaluates_every_rule(
    busy: Database, tmp_path: Path
) -> None:
    with (
        serve_page(busy, "--to", prove_copy(busy, tmp_path / "lake")) as page,
        run_prometheus(tmp_path, page.address.removeprefix("http://")) as server,
    ):
        for panel in panels():
            for target in panel["targets"]:
                query = fill_in(target["expr"])
                count = partial(server.count_series, query)
                assert wait_until(count, f"{panel['title']}: no series of {query}") > 0
        assert server.ask("label/consumer/values") == ["fills", "polls", "streams"]

        def find_rules() -> Any:
            groups = server.ask("rules")["groups"]
            rules = [rule for group in groups for rule in group["rules"]]
            return rules if all(rule["health"] != "unknown" for rule in rules) else None

        rules = wait_until(find_rules, "the rules are evaluated")
    assert len(rules) >= 9
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []

"""Spans of OpenTelemetry: their names, what is inside what, attributes, errors, and none without
the API."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

import pytest
from fixtures.commands import CODE, SECONDS
from fixtures.consumers import clear, consumers_of, options, watcher_of, write
from fixtures.kafka import MockCluster
from fixtures.singers import address_of
from fixtures.watcher_threads import ChangeCollector, run_without_error
from google.cloud.spanner_v1.database import Database
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from watcher import Change, Watcher
from watcher.model.errors import DeliveryError
from watcher.process import tracing
from watcher.sinks.queues import open_queue

OURS = tracing.TRACER
SPANNERS = "cloud.google.com/python/spanner"


class Spans:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def clear(self) -> None:
        """Forgets them."""
        self._exporter.clear()

    @property
    def all(self) -> Sequence[ReadableSpan]:
        """All of them."""
        return self._exporter.get_finished_spans()

    def made_by(self, tracer: str) -> list[ReadableSpan]:
        """Those of a library."""
        return [
            each
            for each in self.all
            if each.instrumentation_scope is not None and each.instrumentation_scope.name == tracer
        ]

    def named(self, name: str) -> list[ReadableSpan]:
        """Those of ours with this name."""
        return [each for each in self.made_by(OURS) if each.name == name]

    def one(self, name: str) -> ReadableSpan:
        """The only one of ours with this name."""
        (found,) = self.named(name)
        return found

    def names_inside(self, outer: ReadableSpan) -> set[str]:
        """Those whose parent is this one."""
        return {
            each.name
            for each in self.all
            if each.parent is not None
            and outer.context is not None
            and each.parent.span_id == outer.context.span_id
        }


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Spans:
    """What this test's process exports; a provider can be set only once a process otherwise."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return Spans(exporter)


def errors_of(span: ReadableSpan) -> list[dict[str, object]]:
    """The errors that were recorded; the client adds events of its own."""
    return [dict(each.attributes or {}) for each in span.events if each.name == "exception"]


def attributes_of(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_a_window_has_its_slices_its_sink_and_the_clients_own_spans_inside(
    music: Database, spans: Spans
) -> None:
    write(music, 1, 2, 3)
    watcher_of(music, [], consumer="me", shard_groups=2).run_once()
    window = spans.one("window")
    attributes = attributes_of(window)
    assert attributes["spanner_watcher.consumer"] == "me"
    assert attributes["spanner_watcher.rows"] == 3
    assert attributes["spanner_watcher.tables"] == ("Singers",)
    assert str(attributes["spanner_watcher.window.end"]).endswith("Z")
    inside = spans.names_inside(window)
    assert {"slice Singers", "write", "flush"} <= inside
    saved = [each for each in inside if each.startswith("CloudSpanner.")]
    assert saved, "the client's spans of saving the position are inside the window"
    slices = [each for each in spans.made_by(OURS) if each.name == "slice Singers"]
    assert len(slices) == 2
    for each in slices:
        assert each.kind is trace.SpanKind.CLIENT
        assert attributes_of(each)["db.system.name"] == "gcp.spanner"
        assert attributes_of(each)["db.namespace"] == music.name
        assert attributes_of(each)["db.collection.name"] == "Singers"
    assert attributes_of(spans.one("flush"))["spanner_watcher.envelope"] == "plain"
    assert (
        sum(
            int(str(attributes_of(each)["spanner_watcher.rows"]))
            for each in spans.made_by(OURS)
            if each.name == "write"
        )
        == 3
    )


def test_a_poll_that_finds_nothing_has_no_span(music: Database, spans: Spans) -> None:
    watcher = watcher_of(music, [], consumer="me", refresh="1h")
    watcher.run_once()
    spans.clear()
    collector = ChangeCollector()
    watcher = watcher_of(music, [], consumer="me", refresh="1h")
    watcher.on_change(collector)
    with run_without_error(watcher):
        write(music, 1)
        collector.wait(1)
    windows = [each for each in spans.made_by(OURS) if each.name == "window"]
    rows = [attributes_of(each)["spanner_watcher.rows"] for each in windows]
    assert 1 in rows
    assert len(rows) <= 2  # the first poll saves the positions


def test_clearing_has_a_span_with_the_clients_statement_inside(
    music: Database, spans: Spans
) -> None:
    write(music, 1, 2, 3)
    watcher_of(music, [], consumer="me").run_once()
    spans.clear()
    clear(music)
    cleared = spans.one("clear Singers")
    attributes = attributes_of(cleared)
    assert attributes["spanner_watcher.rows"] == 3
    assert attributes["spanner_watcher.slowest_consumer"] == "me"
    assert attributes["db.system.name"] == "gcp.spanner"
    assert any(name.startswith("CloudSpanner.") for name in spans.names_inside(cleared))


def test_each_page_of_a_backfill_has_a_span(music: Database, spans: Spans) -> None:
    write(music, *range(5))
    watcher_of(
        music, [], consumer="me", start="latest", backfill=["Singers"], backfill_rows=2
    ).run_once()
    pages = [each for each in spans.made_by(OURS) if each.name == "backfill page"]
    assert [attributes_of(page)["spanner_watcher.rows"] for page in pages] == [2, 2, 1]
    assert attributes_of(pages[0])["spanner_watcher.table"] == "Singers"
    assert {"write", "flush"} <= spans.names_inside(pages[0])


def test_a_change_stream_is_one_slice_a_window(music: Database, spans: Spans) -> None:
    music.update_ddl(["CREATE CHANGE STREAM Everything FOR Singers"]).result(SECONDS)
    stream = {"capture": "change-stream", "stream": {"name": "Everything"}, "start": "latest"}
    watcher_of(music, [], consumer="me", **stream).run_once()
    write(music, 1, 2)
    spans.clear()
    watcher_of(music, [], consumer="me", **stream).run_once()
    window = spans.one("window")
    assert attributes_of(window)["spanner_watcher.rows"] == 2
    assert {"slice Everything", "write", "flush"} <= spans.names_inside(window)


def test_open_queries_have_a_window_for_what_came_together(music: Database, spans: Spans) -> None:
    music.update_ddl(["CREATE CHANGE STREAM Everything FOR Singers"]).result(SECONDS)
    stream = {
        "capture": "change-stream",
        "stream": {"name": "Everything", "push": True},
        "start": "latest",
    }
    watcher_of(music, [], consumer="me", **stream).run_once()
    write(music, 1, 2)
    spans.clear()
    watcher_of(music, [], consumer="me", **stream).run_once()
    windows = spans.named("window")
    rows = [attributes_of(each)["spanner_watcher.rows"] for each in windows]
    assert rows
    assert sum(row for row in rows if isinstance(row, int)) == 2
    assert all({"write", "flush"} <= spans.names_inside(each) for each in windows)


def test_a_queue_is_described_as_opentelemetry_describes_it(
    music: Database, cluster: MockCluster, spans: Spans
) -> None:
    cluster.create_topic("cdc.Singers")
    write(music, 1)
    to = f"kafka://{cluster.address}/cdc.{{table}}"
    watcher = Watcher(**options(music, consumer="me", delivery={"to": to}))
    watcher.deliver_to(open_queue(watcher.config))
    watcher.run_once()
    sent = spans.one("send cdc.{table}")
    assert sent.kind is trace.SpanKind.PRODUCER
    attributes = attributes_of(sent)
    assert attributes["messaging.system"] == "kafka"
    assert attributes["messaging.operation.type"] == "send"
    assert attributes["messaging.destination.template"] == "cdc.{table}"


def test_an_error_is_in_every_span_that_it_leaves_but_values_are_not(
    music: Database, spans: Spans
) -> None:
    write(music, 1)

    def refuse(change: Change) -> None:
        raise ValueError("a secret of the row")

    watcher = Watcher(**options(music, consumer="me", delivery={"retries": 0, "backoff": "1ms"}))
    watcher.on_change(refuse)
    with pytest.raises(DeliveryError):
        watcher.run_once()
    for name in ("write", "window"):
        failed = spans.one(name)
        assert failed.status.status_code is trace.StatusCode.ERROR
        assert attributes_of(failed)["error.type"] == "DeliveryError"
        (error,) = errors_of(failed)
        assert error["exception.type"] == "DeliveryError"
        assert "the callback failed" in str(error["exception.message"])
    told = [f"{each.status.description} {each.events}" for each in spans.made_by(OURS)]
    assert not any("a secret of the row" in text for text in told)


def test_the_message_of_an_error_that_may_quote_a_row_is_left_out(
    music: Database, spans: Spans
) -> None:
    write(music, 1)
    watcher = Watcher(**options(music, consumer="me"))

    def refuse(_: object) -> None:
        raise ValueError("a secret of the row")

    watcher.on_batch(refuse)
    with pytest.raises(ValueError, match="secret"):
        watcher.run_once()
    failed = spans.one("window")
    assert failed.status.description == "ValueError"
    assert errors_of(failed) == [{"exception.type": "ValueError"}]


def test_without_the_api_everything_works(
    music: Database, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, tracing.API)
    write(music, 1, 2)
    seen: list[Change] = []
    watcher_of(music, seen, consumer="me").run_once()
    clear(music)
    assert len(seen) == 2
    assert spans.made_by(OURS) == []
    assert spans.made_by(SPANNERS) != []


BLOCKED = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
from watcher.process.tracing import follow, span, start_span
with span("window", {"a": 1}) as current:
    current.set("b", 2)
    print(list(follow(start_span("slice"), iter([1, 2]))))
try:
    with span("window"):
        raise ValueError("as before")
except ValueError as error:
    print(error)
print("opentelemetry" in sys.modules)
"""


def test_without_the_package_nothing_is_imported_and_nothing_fails() -> None:
    result = subprocess.run(
        [sys.executable, "-c", BLOCKED],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.stdout == "[1, 2]\nas before\nFalse\n", result.stderr


def test_the_command_exports_its_spans(music: Database) -> None:
    """As docs/watch.md says, with the distribution's own command."""
    pytest.importorskip("opentelemetry.distro", reason="needs the extra [tracing]")
    write(music, 1)
    consumers_of(music).create()
    exporters = ["--traces_exporter", "console"]
    exporters += ["--metrics_exporter", "none", "--logs_exporter", "none"]
    start = "import sys; from opentelemetry.instrumentation.auto_instrumentation import run; run()"
    arguments = ["watch", "-d", str(address_of(music)), "-t", "Singers", "--from", "earliest"]
    result = subprocess.run(
        [sys.executable, "-c", start, *exporters, sys.executable, "-c", CODE, *arguments, "--once"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert '"name": "window"' in result.stdout
    assert '"name": "slice Singers"' in result.stdout

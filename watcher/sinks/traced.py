"""A sink whose work is in spans of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping

from watcher.captures import Changed
from watcher.captures.poll import PollCapture
from watcher.process.tracing import OWN, Kind, Value, span
from watcher.settings.destinations import TABLE_FIELD, TableDestination
from watcher.settings.watcher import WatchConfig
from watcher.sinks.contract import Sink, SinkAround, WindowSink


class TracedSink(SinkAround):
    """As the sink inside, with a span for each batch and for each flush."""

    def __init__(self, sink: Sink, attributes: Mapping[str, Value]) -> None:
        super().__init__(sink)
        self._sink = sink
        self._attributes = attributes
        self._kind = Kind.PRODUCER if "messaging.system" in attributes else Kind.INTERNAL
        topic = attributes.get("messaging.destination.template") or attributes.get(
            "messaging.destination.name"
        )
        self._name = f"send {topic}" if topic else "write"

    def write(self, rows: Changed) -> None:
        """As ``Sink.write``."""
        with span(self._name, self._attributes, self._kind) as current:
            current.set(f"{OWN}rows", rows.batch.num_rows)
            self._sink.write(rows)

    def flush(self) -> None:
        """As ``Sink.flush``."""
        with span("flush", self._attributes, Kind.CLIENT):
            self._sink.flush()


class TracedWindowSink(TracedSink):
    """The same of a sink that takes whole windows."""

    def __init__(self, sink: WindowSink, attributes: Mapping[str, Value]) -> None:
        super().__init__(sink, attributes)
        self._windows = sink

    @property
    def unfinished(self) -> bool:
        """As ``WindowSink.unfinished``."""
        return self._windows.unfinished

    def begin_window(
        self, end: int, starts: Mapping[str, int], captures: Mapping[str, PollCapture]
    ) -> None:
        """As ``WindowSink.begin_window``."""
        self._windows.begin_window(end, starts, captures)


def trace_sink(sink: Sink, config: WatchConfig) -> Sink:
    """The sink with spans."""
    attributes = describe_sink(config)
    if isinstance(sink, WindowSink):
        return TracedWindowSink(sink, attributes)
    return TracedSink(sink, attributes)


def describe_sink(config: WatchConfig) -> dict[str, Value]:
    """The attributes of a sink: of a queue or a database, as OpenTelemetry names them."""
    queue = config.delivery.queue
    if queue is None or queue.as_lines:
        return {f"{OWN}envelope": config.delivery.envelope}
    if isinstance(queue, TableDestination):
        served = {"server.address": queue.server_address} if queue.server_address else {}
        return {"db.system.name": queue.messaging_system, **served}
    templated = TABLE_FIELD in queue.topic
    attributes: dict[str, Value] = {
        "messaging.system": queue.messaging_system,
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        f"messaging.destination.{'template' if templated else 'name'}": queue.topic,
        f"{OWN}envelope": config.delivery.envelope,
    }
    if queue.server_address is not None:
        attributes["server.address"] = queue.server_address
    return attributes

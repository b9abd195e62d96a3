"""The page of metrics."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry

from reference_pages.markdown import code, make_page, make_table, require_text
from watcher.runners.metrics import Metrics


def list_metrics(registry: CollectorRegistry) -> Iterator[tuple[str, str, str, str]]:
    """Name, type, labels and meaning of each metric. Raises MissingDescriptionError."""
    # A metric without values yet says what its labels are in no other place.
    collectors = dict.fromkeys(registry._collector_to_names)
    for collector in collectors:
        for metric in collector.collect():
            name = f"{metric.name}_total" if metric.type == "counter" else metric.name
            labels = getattr(collector, "_labelnames", ())
            meaning = require_text(metric.documentation, name, "watcher/runners/metrics.py")
            yield code(name), metric.type, ", ".join(map(code, labels)), meaning


def make_metrics_page() -> str:
    """docs/reference/metrics.md. Raises MissingDescriptionError."""
    return make_page(
        "Metrics",
        "What a watcher with [`[metrics]`](configuration.md#metrics) serves to Prometheus at"
        " `http://HOST:PORT/metrics`.",
        "",
        *make_table(
            ("metric", "type", "labels", "meaning"), list_metrics(Metrics("NAME").registry)
        ),
    )

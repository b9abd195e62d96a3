"""io.debezium:debezium-connector-spanner: its integration tests, on a broker of Kafka that is
started here, where its authors start one in a container."""

from __future__ import annotations

import shutil

from fixtures.kafka_broker import Broker

from benchmarks.debezium import build
from clients.maven_packages import compile_java, resolve, run_junit
from clients.outcomes import Outcome
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "io.debezium:debezium-connector-spanner", "3.6.0.Final"
PORT = 9010
"""The tests have this port in their text."""
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    f"{PACKAGE}:{VERSION}:tests",
    f"io.debezium:debezium-connector-common:{VERSION}:tests",
    f"io.debezium:debezium-embedded:{VERSION}",
    f"io.debezium:debezium-embedded:{VERSION}:tests",
    f"io.debezium:debezium-util:{VERSION}:tests",
    "org.assertj:assertj-core:3.27.6",
    "org.awaitility:awaitility:4.2.0",
    "org.slf4j:slf4j-simple:1.7.36",
)


def run(place: Workplace) -> list[Outcome]:
    """Runs every test."""
    class_path = resolve(place, PACKAGES)
    classes = compile_java(place, class_path, "KafkaEnvironment.java", "KafkaBrokerApi.java")
    folder = place.folder / "broker"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    broker = Broker(build.command(), folder)
    try:
        selection = ["--select-package=io.debezium.connector.spanner"]
        return run_junit(
            place,
            f"{classes}:{class_path}",
            [*selection, r"--include-classname=.*IT"],
            {"broker": broker.address},
        )
    finally:
        broker.kill()
        broker.network.close()


RESTART = "io.debezium.connector.spanner.GracefulRestartIT.checkUpdatesStreamedToKafka()"
SUITE = Suite(
    "debezium",
    f"{PACKAGE} {VERSION}",
    run,
    {RESTART: "it keeps offsets in memory: after its restart the partition is read again"},
    port=PORT,
)

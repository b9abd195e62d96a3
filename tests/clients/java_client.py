"""com.google.cloud:google-cloud-spanner: its integration tests, of the client and of its
connections, which go through both dialects."""

from __future__ import annotations

from clients.maven_packages import (
    TEST_INSTANCE,
    compile_java,
    resolve,
    run_junit,
    unpack_resources,
)
from clients.outcomes import Outcome
from clients.suite import Suite, Workplace

PACKAGE, VERSION = "com.google.cloud:google-cloud-spanner", "6.122.0"
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    f"{PACKAGE}:{VERSION}:tests",
    "com.google.api:gax-grpc:2.85.0:testlib",
    "com.google.cloud:google-cloud-trace:2.88.0",
    "com.google.guava:guava-testlib:33.5.0-jre",
    "com.google.truth:truth:1.4.5",
    "junit:junit:4.13.2",
    "org.hamcrest:hamcrest:3.0",
    "org.mockito:mockito-core:4.11.0",
)


def run(place: Workplace) -> list[Outcome]:
    """Runs every test."""
    class_path = resolve(place, PACKAGES)
    resources = unpack_resources(place, class_path, f"spanner-{VERSION}-tests.jar")
    classes = compile_java(place, class_path, "EmulatorSpannerHelper.java")
    packages = ("com.google.cloud.spanner.it", "com.google.cloud.spanner.connection.it")
    selection = [f"--select-package={each}" for each in packages]
    return run_junit(
        place,
        f"{classes}:{resources}:{class_path}",
        [*selection, r"--include-classname=.*\.IT.*"],
        TEST_INSTANCE,
    )


METRICS = "it.ITBuiltInMetricsTest.testBuiltinMetricsWithDefaultOTEL"
SUITE = Suite(
    "java",
    f"{PACKAGE} {VERSION}",
    run,
    {f"com.google.cloud.spanner.{METRICS}": "it reads what Cloud Monitoring has got"},
)

"""com.google.cloud:google-cloud-spanner-jdbc: its integration tests, which go through both
dialects."""

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

PACKAGE, VERSION = "com.google.cloud:google-cloud-spanner-jdbc", "2.44.0"
TESTS = "com.google.cloud.spanner.jdbc.it"
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    f"{PACKAGE}:{VERSION}:tests",
    "com.google.cloud:google-cloud-spanner:6.122.0:tests",
    "com.google.api:gax-grpc:2.85.0:testlib",
    "com.google.truth:truth:1.4.5",
    "junit:junit:4.13.2",
    "org.mockito:mockito-core:4.11.0",
)


def run(place: Workplace) -> list[Outcome]:
    """Runs every test. ``EmulatorSpannerHelper`` of ours says who hears that the server is no
    emulator."""
    class_path = resolve(place, PACKAGES)
    unpack_resources(place, class_path, f"jdbc-{VERSION}-tests.jar")
    classes = compile_java(place, class_path, "EmulatorSpannerHelper.java")
    selection = [f"--select-package={TESTS}", r"--include-classname=.*\.IT.*Test"]
    return run_junit(place, f"{classes}:{class_path}", selection, TEST_INSTANCE)


BUILD = "it compiles a file of the sources, and starts the jars of a build: both are not published"
SUITE = Suite(
    "jdbc",
    f"{PACKAGE} {VERSION}",
    run,
    {f"{TESTS}.ITSingleJarTest.{name}": BUILD for name in ("testUseShadedJar", "testUseSingleJar")},
)

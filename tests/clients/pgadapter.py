"""com.google.cloud:google-cloud-spanner-pgadapter: the integration tests of its repository that use
pgJDBC through it, as on Spanner and not on an emulator."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from clients.go_modules import replace_in
from clients.maven_packages import resolve, run_junit
from clients.outcomes import Outcome
from clients.repositories import copy_files
from clients.suite import INSTANCE, PROJECT, Suite, Workplace

PACKAGE, VERSION = "com.google.cloud:google-cloud-spanner-pgadapter", "0.40.0"
REPOSITORY = "GoogleCloudPlatform/pgadapter"
DRIVER = "42.7.4"
PACKAGES = (
    f"{PACKAGE}:{VERSION}",
    f"org.postgresql:postgresql:{DRIVER}",
    "com.google.cloud:google-cloud-spanner:6.79.0:tests",
    "com.google.api:gax-grpc:2.55.0:testlib",
    "net.java.dev.jna:jna:5.15.0",
    "junit:junit:4.13.2",
    "org.mockito:mockito-core:4.11.0",
)
TESTS = "com.google.cloud.spanner.pgadapter"
CLASSES = (
    *("ITDdlTest", "ITErrorsTest", "ITJdbcDescribeStatementTest", "ITJdbcMetadataTest"),
    *("ITJdbcTest", "ITPgClassTest", "ITQueryTest"),
)
IS_EMULATOR = 'return System.getenv("SPANNER_EMULATOR_HOST") != null;'
DRIVERS = re.compile(r"(?s)(String\[] VERSIONS =\s+new String\[] \{).*?\};")
DOWNLOAD = re.compile(r"(?s)String mavenUrl =.*?;\n")
"""Each case is for sixty versions of the driver, which it fetches: here for the one installed."""


def run(place: Workplace) -> list[Outcome]:
    """Runs every test."""
    return run_classes(place, *CLASSES)


def run_classes(place: Workplace, *names: str, samples: str | None = None) -> list[Outcome]:
    """Runs classes of tests, which may use the files of a folder of samples."""
    class_path = resolve(place, PACKAGES)
    source = copy_files(place, REPOSITORY, f"v{VERSION}", "src/test", *filter(None, [samples]))
    for folder in source.iterdir():  # Tests open files below them.
        shutil.rmtree(place.folder / folder.name, ignore_errors=True)
        folder.rename(place.folder / folder.name)
    java = place.folder / "src/test/java"
    folder = java / TESTS.replace(".", "/")
    replace_in(folder / "IntegrationTest.java", IS_EMULATOR, "return false;")
    metadata = folder / "ITJdbcMetadataTest.java"
    (jar,) = (path for path in class_path.split(":") if path.endswith(f"postgresql-{DRIVER}.jar"))
    text = DRIVERS.sub(rf'\1"{DRIVER}"}};', metadata.read_text())
    metadata.write_text(DOWNLOAD.sub(f'String mavenUrl = "file:{jar}";\n', text))
    files = [folder / f"{name.replace('.', '/')}.java" for name in names]
    classes = compile_sources(place, class_path, java, files)
    properties = {"PG_ADAPTER_PROJECT": PROJECT, "PG_ADAPTER_INSTANCE": INSTANCE}
    selection = [f"--select-class={TESTS}.{name}" for name in names]
    resources = place.folder / "src/test/resources"
    return run_junit(place, f"{classes}:{resources}:{class_path}", selection, properties)


def compile_sources(place: Workplace, class_path: str, java: Path, files: Sequence[Path]) -> Path:
    """The folder of classes of files, and of the sources below ``java`` that they use."""
    classes = place.folder / "classes"
    shutil.rmtree(classes, ignore_errors=True)
    command: list[str | Path] = [
        "javac",
        "-nowarn",
        "-proc:none",
        "-cp",
        class_path,
        "-sourcepath",
        java,
    ]
    place.call([*command, "-d", classes, *files])
    return classes


SUITE = Suite(
    "pgadapter",
    f"{PACKAGE} {VERSION}",
    run,
    {
        f"{TESTS}.ITPgClassTest.testPgConstraint": (
            "it expects ARRAY_AGG without ORDER BY to keep the order of the key"
        ),
        f"{TESTS}.ITPgClassTest.testPgIndex": (
            "it expects a FILTER of unique indexes in INFORMATION_SCHEMA, which is not documented"
        ),
    },
)

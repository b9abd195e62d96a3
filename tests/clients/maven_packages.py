"""Suites, and programs of ours, that run on packages of Maven: needs Maven and a JDK."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from clients.outcomes import Outcome, read_junit
from clients.suite import INSTANCE, PROJECT, Workplace

JAVA = Path(__file__).with_name("java")
DESCRIPTOR = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion>
<groupId>clients</groupId><artifactId>suite</artifactId><version>1</version>
<dependencies>
{}
</dependencies>
</project>
"""
CONSOLE = "org.junit.platform:junit-platform-console-standalone:1.11.4"
"""Runs the tests of JUnit 4 and 5, and writes reports."""
HEAP = "-Xmx1g"
TEST_INSTANCE = {
    "spanner.testenv.config.class": "com.google.cloud.spanner.GceTestEnvConfig",
    "spanner.testenv.instance": f"projects/{PROJECT}/instances/{INSTANCE}",
}
"""Where the integration tests of Google's Java packages run."""


def resolve(place: Workplace, packages: Sequence[str]) -> str:
    """The class path of packages (group:name:version, with a classifier behind it where one is
    meant) and of what they need."""
    listing = place.folder / "class-path.txt"
    descriptor = DESCRIPTOR.format("\n".join(map(describe, [*packages, CONSOLE])))
    path = place.folder / "pom.xml"
    if not listing.exists() or path.read_text() != descriptor:
        listing.unlink(missing_ok=True)
        path.write_text(descriptor)
        goal = "dependency:build-classpath"
        place.call(["mvn", "--quiet", "--batch-mode", goal, f"-Dmdep.outputFile={listing}"])
    return listing.read_text()


def describe(package: str) -> str:
    """A package as a dependency of a project."""
    names = ("groupId", "artifactId", "version", "classifier")
    parts = zip(names, package.split(":"), strict=False)
    return f"<dependency>{''.join(f'<{n}>{v}</{n}>' for n, v in parts)}</dependency>"


def unpack_resources(place: Workplace, class_path: str, name: str) -> Path:
    """The files of a jar that are no classes, in the folder where tests open those of the
    sources."""
    (jar,) = (path for path in class_path.split(":") if path.endswith(name))
    folder = place.folder / "src/test/resources"
    shutil.rmtree(folder, ignore_errors=True)
    with zipfile.ZipFile(jar) as archive:
        archive.extractall(folder, [n for n in archive.namelist() if not n.endswith(".class")])
    return folder


def compile_java(place: Workplace, class_path: str, *sources: str) -> Path:
    """Compiles files of ours; the folder of their classes."""
    folder = place.folder / "classes"
    shutil.rmtree(folder, ignore_errors=True)
    files = [JAVA / name for name in sources]
    place.call(["javac", "-nowarn", "-cp", class_path, "-d", folder, *files])
    return folder


def run_junit(
    place: Workplace,
    class_path: str,
    selection: Sequence[str],
    properties: Mapping[str, str] | None = None,
) -> list[Outcome]:
    """The outcomes of JUnit."""
    reports = place.folder / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    settings = [f"-D{name}={value}" for name, value in (properties or {}).items()]
    launcher = "org.junit.platform.console.ConsoleLauncher"
    command = ["java", HEAP, *settings, "-cp", class_path, launcher, "execute"]
    report = f"--reports-dir={reports}"
    place.call([*command, "--disable-banner", report, *selection], may_fail=True)
    return [each for path in sorted(reports.glob("*.xml")) for each in read_junit(path)]


def run_program(
    place: Workplace, packages: Sequence[str], *names: str, dialect: str = "", **settings: str
) -> list[Outcome]:
    """The outcomes of classes of ours, which are told the instance, and the address of a database
    that the JDBC driver creates, in Spanner's ``dialect`` where one is given."""
    class_path = resolve(place, packages)
    classes = compile_java(place, class_path, *(f"{name}.java" for name in names))
    database = f"/projects/{PROJECT}/instances/{INSTANCE}/databases/program"
    url = f"jdbc:cloudspanner:{database};autoConfigEmulator=true"
    if dialect:
        url += f";dialect={dialect};defaultSequenceKind=bit_reversed_positive"
    properties = {"project": PROJECT, "instance": INSTANCE, "url": url, **settings}
    selection = [f"--select-class={name}" for name in names]
    return run_junit(place, f"{classes}:{class_path}", selection, properties)

"""Fetches Debezium's connector, Kafka Connect and a broker with Maven, once."""

from __future__ import annotations

from pathlib import Path

from benchmarks.compiled import built
from benchmarks.maven import Tools, find_tools, run_maven

SOURCES = Path(__file__).resolve().parent
FILES = ("pom.xml",)
PROGRAM = "debezium"
NAMES = "Debezium's connector for Spanner, Kafka Connect and a Kafka broker"


def tools() -> Tools:
    """As ``find_tools``. A broker of Kafka 4 needs Java 17."""
    return find_tools(NAMES, 17)


def command() -> list[str]:
    """The command line that runs a class of them, without the class; fetches them first where
    needed.

    Raises MissingToolsError, and RunError with Maven's last words.
    """
    chosen = tools()
    folder = built(PROGRAM, SOURCES, FILES, lambda work: run_maven(chosen, work, NAMES))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return [str(chosen.java), quiet, "-cp", str(folder / "target" / "lib" / "*")]

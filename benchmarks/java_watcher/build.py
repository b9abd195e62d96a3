"""Builds the driver of the Java watcher with Maven, once."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.compiled import built, cached
from benchmarks.maven import Tools, find_tools, run_maven

SOURCES = Path(__file__).resolve().parent
FILES = ("pom.xml", "src/main/java/JavaWatcher.java")
PROGRAM = "java_watcher"
MAIN_CLASS = "JavaWatcher"


def tools() -> Tools:
    """As ``find_tools``."""
    return find_tools("the Java Spanner Change Watcher", 11)


def command() -> list[str]:
    """The command line that runs the driver, without its arguments; builds it first where needed.

    Raises MissingToolsError, and RunError with Maven's last words.
    """
    chosen = tools()
    target = built(PROGRAM, SOURCES, FILES, lambda work: build(chosen, work)) / "target"
    path = os.pathsep.join([str(target / "classes"), str(target / "lib" / "*")])
    return [str(chosen.java), "-cp", path, MAIN_CLASS]


def folder() -> Path:
    """Where this state of the sources is built."""
    return cached(PROGRAM, SOURCES, FILES)


def build(chosen: Tools, work: Path) -> None:
    """Builds it in a folder that has the sources. Raises RunError."""
    run_maven(chosen, work, "the Java watcher")

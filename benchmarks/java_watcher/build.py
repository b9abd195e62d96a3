"""Builds the driver of the Java watcher with Maven, once."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compiled import MissingToolsError, built, cached, compile_in

SOURCES = Path(__file__).resolve().parent
FILES = ("pom.xml", "src/main/java/JavaWatcher.java")
PROGRAM = "java_watcher"
MAIN_CLASS = "JavaWatcher"


@dataclass(frozen=True, slots=True)
class Tools:
    """The commands that build and run it."""

    java: Path
    maven: Path


def tools() -> Tools:
    """A JDK from JAVA_HOME, or else from PATH, and Maven from PATH. Raises MissingToolsError."""
    compiler, maven = jdk_command("javac"), shutil.which("mvn")
    lacking = [
        name for name, tool in (("a JDK (javac)", compiler), ("Maven (mvn)", maven)) if not tool
    ]
    if compiler is None or maven is None:
        raise MissingToolsError(
            f"{' and '.join(lacking)} not found on PATH: Maven fetches and builds the Java Spanner"
            " Change Watcher with JDK 11 or newer; install them, or set JAVA_HOME"
        )
    return Tools(compiler.with_name("java"), Path(maven))


def jdk_command(name: str) -> Path | None:
    """A command of the JDK."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / name).exists():
        return Path(home) / "bin" / name
    path = shutil.which(name)
    return Path(path) if path else None


def command() -> list[str]:
    """The command line that runs the driver, without its arguments; builds it first where needed.

    Raises MissingToolsError, and RunError with Maven's last words.
    """
    chosen = tools()
    target = built(PROGRAM, SOURCES, FILES, lambda work: run_maven(chosen, work)) / "target"
    path = os.pathsep.join([str(target / "classes"), str(target / "lib" / "*")])
    return [str(chosen.java), "-cp", path, MAIN_CLASS]


def folder() -> Path:
    """Where this state of the sources is built."""
    return cached(PROGRAM, SOURCES, FILES)


def run_maven(chosen: Tools, work: Path) -> None:
    """Compiles, and copies the libraries to target/lib. Raises RunError."""
    maven = [str(chosen.maven), "-q", "-B", "process-classes"]
    compile_in(work, maven, "Maven could not build the Java watcher")

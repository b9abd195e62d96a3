"""Builds the driver of the Java watcher with Maven, once, into a cache outside of the sources."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import LOG_LINES_SHOWN, RunError

SOURCES = Path(__file__).resolve().parent
FILES = ("pom.xml", "src/main/java/JavaWatcher.java")
MAIN_CLASS = "JavaWatcher"
BUILD_SECONDS_MAX = 600.0
CACHE = "spanner-watcher/java_watcher"


class MissingToolsError(Exception):
    """There is no JDK, or no Maven; nothing can be built."""


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
    built = folder() / "target"
    if not built.exists():
        build(chosen, folder())
    path = os.pathsep.join([str(built / "classes"), str(built / "lib" / "*")])
    return [str(chosen.java), "-cp", path, MAIN_CLASS]


def folder() -> Path:
    """Where this state of the sources is built."""
    content = hashlib.sha256(b"\0".join((SOURCES / name).read_bytes() for name in FILES))
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / CACHE / content.hexdigest()[:16]


def build(chosen: Tools, place: Path) -> None:
    """Builds in a folder beside, which becomes the place as a whole. Raises RunError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as name:
        work = Path(name) / "build"
        for each in FILES:
            (work / each).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(SOURCES / each, work / each)
        run_maven(chosen, work)
        try:
            work.rename(place)
        except OSError:
            # Another process was faster: what it built is the same.
            if not (place / "target").exists():
                raise


def run_maven(chosen: Tools, work: Path) -> None:
    """Compiles, and copies the libraries to target/lib. Raises RunError."""
    maven = [str(chosen.maven), "-q", "-B", "process-classes"]
    done = subprocess.run(
        maven,
        cwd=work,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        timeout=BUILD_SECONDS_MAX,
    )
    if done.returncode:
        words = "\n".join(done.stdout.splitlines()[-LOG_LINES_SHOWN:])
        raise RunError(f"Maven could not build the Java watcher:\n{words}")

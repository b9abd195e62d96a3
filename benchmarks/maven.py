"""A JDK and Maven: what fetches and builds the programs of others that ours are compared with."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compiled import MissingToolsError, compile_in


@dataclass(frozen=True, slots=True)
class Tools:
    """The commands that build and run it."""

    java: Path
    maven: Path


def find_tools(program: str, jdk: int) -> Tools:
    """A JDK from JAVA_HOME, or else from PATH, and Maven from PATH. Raises MissingToolsError, which
    names the ``program`` and the oldest ``jdk`` for it."""
    compiler, maven = find_jdk_command("javac"), shutil.which("mvn")
    lacking = [
        name for name, tool in (("a JDK (javac)", compiler), ("Maven (mvn)", maven)) if not tool
    ]
    if compiler is None or maven is None:
        raise MissingToolsError(
            f"{' and '.join(lacking)} not found on PATH: Maven fetches and builds {program} with"
            f" JDK {jdk} or newer; install them, or set JAVA_HOME"
        )
    return Tools(compiler.with_name("java"), Path(maven))


def find_jdk_command(name: str) -> Path | None:
    """A command of the JDK."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / name).exists():
        return Path(home) / "bin" / name
    path = shutil.which(name)
    return Path(path) if path else None


def run_maven(tools: Tools, work: Path, program: str) -> None:
    """Compiles, and copies the libraries to target/lib. Raises RunError."""
    command = [str(tools.maven), "-q", "-B", "process-classes"]
    compile_in(work, command, f"Maven could not build {program}")

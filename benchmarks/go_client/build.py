"""Builds the Go program once."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.compiled import MissingToolsError, built, compile_in

SOURCES = Path(__file__).resolve().parent
FILES = ("go.mod", "go.sum", "main.go")
PROGRAM = "go_client"


def command() -> list[str]:
    """The command line of the program, without its arguments; builds it first where needed.

    Raises MissingToolsError without Go, and RunError with the compiler's last words.
    """
    go = shutil.which("go")
    if go is None:
        raise MissingToolsError("go not found on PATH: install Go 1.26 or newer for client=go")
    compiler = [go, "build", "-buildvcs=false", "-o", PROGRAM, "."]
    what = "Go could not build the client"
    folder = built(PROGRAM, SOURCES, FILES, lambda work: compile_in(work, compiler, what))
    return [str(folder / PROGRAM)]

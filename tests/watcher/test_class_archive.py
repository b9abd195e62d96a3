"""The archive of classes: whose it is, and how Spark's launcher is told of it."""

from __future__ import annotations

import json
import os
import pwd
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures.commands import run_command

from watcher.model.errors import ConfigurationError
from watcher.process.spark.class_archive import SUBMIT_OPTIONS, USE, name_archive, offer_archive
from watcher.process.spark.java import WHEEL_JAVA

Own = Callable[[], Path]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Own:
    """Java and Spark of a test; the function makes an archive of them, that only says so."""
    java, jars = tmp_path / "java/bin/java", tmp_path / "spark/jars"
    java.parent.mkdir(parents=True)
    java.touch(mode=0o755)
    jars.mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / 'a "cache" of \\mine'))
    monkeypatch.delenv(WHEEL_JAVA, raising=False)
    monkeypatch.setenv(SUBMIT_OPTIONS, "-Done=1")

    def make() -> Path:
        path = name_archive()
        assert path is not None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        return path

    return make


def test_a_session_is_told_of_the_archive_beside_its_own_options(own: Own) -> None:
    path = own()
    offer_archive()
    offer_archive()
    # Spark's launcher takes quotes and backslashes as a shell does.
    given = shlex.split(os.environ[SUBMIT_OPTIONS])
    assert given[0] == "-Done=1"
    assert [each for each in given if each.startswith(USE)] == [f"{USE}={path}"]


def test_nothing_is_said_where_there_is_no_archive(own: Own) -> None:
    offer_archive()
    assert os.environ[SUBMIT_OPTIONS] == "-Done=1"


def test_the_archive_of_a_user_is_kept(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    own()
    chosen = f"{USE}=/mine.jsa"
    monkeypatch.setenv(SUBMIT_OPTIONS, chosen)
    offer_archive()
    assert os.environ[SUBMIT_OPTIONS] == chosen


def test_a_user_without_a_home_has_sessions_without_an_archive(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    own()
    for name in ("XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name)
    # As in a container whose user is a number.
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)
    offer_archive()
    assert os.environ[SUBMIT_OPTIONS] == "-Done=1"
    with pytest.raises(ConfigurationError, match="this user has no home: set XDG_CACHE_HOME"):
        name_archive()


@pytest.mark.parametrize("changed", ["java/bin/java", "spark/jars"])
def test_an_upgrade_is_another_archive(own: Own, tmp_path: Path, changed: str) -> None:
    path = own()
    os.utime(tmp_path / changed, (1, 1))
    assert name_archive() != path


@pytest.mark.parametrize("missing", ["JAVA_HOME", "SPARK_HOME"])
def test_where_java_or_spark_is_missing_there_is_none(
    own: Own, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    own()
    monkeypatch.setenv(missing, str(tmp_path / "nowhere"))
    assert name_archive() is None
    offer_archive()
    assert os.environ[SUBMIT_OPTIONS] == "-Done=1"


def test_a_dry_run_says_where_it_would_be(tmp_path: Path) -> None:
    result = run_command("spark-archive", "--dry-run", "--json", XDG_CACHE_HOME=str(tmp_path))
    shown = json.loads(result.stdout)
    assert Path(shown["path"]).is_relative_to(tmp_path)
    assert shown["there"] is False
    assert not list(tmp_path.iterdir())


def test_what_is_wrong_with_spark_is_said(tmp_path: Path) -> None:
    result = run_command("spark-archive", SPARK_HOME=str(tmp_path))
    assert (result.returncode, result.stderr) == (
        1,
        "error: found no jars of Spark: SPARK_HOME names another folder\n",
    )

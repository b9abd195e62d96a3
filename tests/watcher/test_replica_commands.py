"""``replicate`` and ``verify`` as a user runs them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from fixtures.commands import run_command
from fixtures.replicas import adopt_newest, open_table
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database

EQUAL, DIFFERS, NO_CUT, WRONG_USAGE = 0, 10, 6, 2


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_command(*arguments, **({"COLUMNS": "200"} | environment))


def test_replicate_and_verify_from_a_file(singers: Database, tmp_path: Path) -> None:
    target = f"delta:{tmp_path}/lake"
    config = tmp_path / "replica.toml"
    config.write_text(
        f'database = "{address_of(singers)}"\ntables = ["Singers"]\n[replica]\nto = "{target}"\n'
    )
    write_singers(singers, range(30), "name")
    plan = run("replicate", "--config", str(config), "--dry-run", "--json")
    assert plan.returncode == 0, plan.stderr
    assert json.loads(plan.stdout)["tables"] == [
        {"table": "Singers", "action": "load", "reason": "there is no copy"}
    ]
    assert not (tmp_path / "lake").exists()
    assert run("verify", "--to", target).returncode == NO_CUT
    once = run("replicate", "--config", str(config), "--once", "--json")
    assert once.returncode == 0, once.stderr
    cut = json.loads(once.stdout.splitlines()[0])
    assert (cut["exact"], cut["phase"], cut["loaded"]) == (True, "loading", {"Singers": 30})
    assert cut["lag_seconds"] >= 0
    equal = run("verify", "--to", target, "--at", cut["cut"])
    assert equal.returncode == EQUAL, equal.stderr
    assert "equal  Singers: 30 rows in Spanner, 30 in the copy" in equal.stdout
    assert cut["cut"] in equal.stdout
    open_table(tmp_path / "lake", "Singers").update({"LastName": "'x'"}, predicate='"SingerId" = 7')
    adopt_newest(tmp_path / "lake", "Singers")
    differs = run("verify", "--to", target, "-d", str(address_of(singers)), "-t", "Singers")
    assert differs.returncode == DIFFERS, differs.stderr
    assert 'changed {"SingerId": 7}' in differs.stdout
    report = run("verify", "--to", target, "--json", "--data-boost")
    assert report.returncode == DIFFERS, report.stderr
    (table,) = json.loads(report.stdout)["tables"]
    assert table["differences"] == [{"kind": "changed", "key": {"SingerId": 7}}]
    ignored = run("verify", "--to", target, "--ignore-column", "LastName")
    assert ignored.returncode == EQUAL, ignored.stderr


def test_copies_are_merged_as_the_command_says(singers: Database, tmp_path: Path) -> None:
    target = f"delta:{tmp_path}/lake"
    where = ("-d", str(address_of(singers)), "-t", "Singers", "--to", target, "--once")

    def replicate(*flags: str) -> tuple[list[str] | None, int]:
        """The features that readers need, and the files that the last commit has removed whole."""
        done = run("replicate", *where, *flags)
        assert done.returncode == 0, done.stderr
        table = open_table(tmp_path / "lake", "Singers")
        entry = tmp_path / "lake" / "Singers" / "_delta_log" / f"{table.version():020d}.json"
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        added = {each["add"]["path"] for each in actions if "add" in each}
        removed = {each["remove"]["path"] for each in actions if "remove" in each}
        assert run("verify", "--to", target).returncode == EQUAL
        return table.protocol().reader_features, len(removed - added)

    write_singers(singers, range(30), "name")
    assert replicate("--merge", "copy-on-write") == (None, 0)
    for name in ("still", "again"):
        write_singers(singers, range(5), name)
        assert replicate() == (None, 1), "as it was made"
    write_singers(singers, range(5), "otherwise")
    assert replicate("--merge", "merge-on-read") == (["deletionVectors"], 0)
    write_singers(singers, range(5, 9), "now by default")
    assert replicate() == (["deletionVectors"], 0)
    write_singers(singers, range(9), "whole files")
    features, _ = replicate("--merge", "copy-on-write")
    assert features == ["deletionVectors"]


def test_what_is_wrong_is_said_before_anything_is_read(singers: Database, tmp_path: Path) -> None:
    where = ("-d", str(address_of(singers)))
    cases = {
        ("replicate", *where): "use --to delta:FOLDER",
        (
            "replicate",
            *where,
            "--to",
            "parquet:x",
        ): "this process does not write parquet: use",
        (
            "replicate",
            *where,
            "--to",
            "delta:x",
            "--merge",
            "x",
        ): "'merge-on-read' or 'copy-on-write'",
        (
            *("replicate", *where, "--to", "parquet:x", "--engine", "spark"),
            *("--merge", "merge-on-read"),
        ): "copies in Parquet are merged by copy-on-write",
        (
            *("replicate", *where, "--to", "parquet:x", "--engine", "spark"),
            *("--compaction", "on"),
        ): "'compaction' is not for copies in Parquet",
        ("verify", "--to", "x"): "use delta:x or iceberg:x",
        ("verify", "--to", f"delta:{tmp_path}", "--at", "noon"): "invalid timestamp 'noon'",
    }
    for arguments, message in cases.items():
        result = run(*arguments)
        assert result.returncode in (WRONG_USAGE, NO_CUT), result.stderr
        assert message in result.stderr

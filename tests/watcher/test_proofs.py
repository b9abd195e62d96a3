"""``verify --incremental``: what has changed is compared at once, all else within some days."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake
from fixtures.commands import run_command
from fixtures.iceberg_histories import open_table as open_iceberg
from fixtures.replicas import (
    CONSUMER,
    SMALL,
    last_cut,
    open_table,
    read_delta,
    replicate,
    verify_folder,
)
from fixtures.singers import address_of, write_singers
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from watcher.consumers.positions import TABLE
from watcher.overview.as_json import describe_overview
from watcher.overview.copies import make_proof_reader
from watcher.overview.metrics import collect_tables
from watcher.overview.observer import Observer
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.cuts.proofs import DAY, SECOND, ProofFiles, ProvedRange, TableProof
from watcher.replica.formats import open_copies
from watcher.replica.verification import incremental
from watcher.replica.verification.incremental import IncrementalOptions, verify_changes
from watcher.replica.verification.report import Progress, TableReport
from watcher.spanner.queries import QueryClient

ICEBERG = "iceberg"
MERGES = ["merge-on-read", "copy-on-write", ICEBERG]
"""How rows are merged into Delta; or the other format."""
COLUMNS = ("SingerId", "FirstName", "LastName")
Act = Callable[["OtherWriter"], object]


def copy_singers(database: Database, folder: Path, merge: str = "merge-on-read") -> None:
    by = {"to": f"iceberg:{folder}"} if merge == ICEBERG else {"merge": merge}
    replicate(database, folder, replica={"to": f"delta:{folder}"} | by)


def start(
    database: Database, folder: Path, merge: str = "merge-on-read", keys: Sequence[int] = range(200)
) -> None:
    with database.batch() as batch:
        batch.insert_or_update("Singers", COLUMNS, [(key, f"f{key}", f"l{key}") for key in keys])
    copy_singers(database, folder, merge)


def prove(database: Database, folder: Path, within: float = 7 * DAY) -> TableReport:
    """A run at the newest cut that can be compared."""
    cut = Manifest(str(folder)).find_comparable()
    copies = open_copies(cut.copies, str(folder), CONSUMER)
    options = IncrementalOptions(within_seconds=within, depth=SMALL)
    queries = QueryClient(address_of(database))
    report = verify_changes(queries, copies, cut, ProofFiles(str(folder)), options)
    (table,) = report.tables
    return table


def progress_of(report: TableReport) -> Progress:
    assert report.progress is not None
    return report.progress


def read_proof(folder: Path) -> TableProof:
    proof = ProofFiles(str(folder)).read("Singers")
    assert proof is not None
    return proof


def differences(report: TableReport) -> set[tuple[str, object]]:
    return {(each.kind.value, each.key["SingerId"]) for each in report.differences}


class OtherWriter:
    """Somebody who writes into copies of either format, with the library of the format."""

    def __init__(self, folder: Path, merge: str) -> None:
        self._folder = folder
        self._iceberg = merge == ICEBERG

    def delete(self, *keys: int) -> None:
        listed = ", ".join(map(str, keys))
        if self._iceberg:
            open_iceberg(self._folder, "Singers").delete(f"SingerId IN ({listed})")
        else:
            open_table(self._folder, "Singers").delete(f'"SingerId" IN ({listed})')

    def append(self, rows: pa.Table) -> None:
        if self._iceberg:
            open_iceberg(self._folder, "Singers").append(rows)
        else:
            write_deltalake(open_table(self._folder, "Singers"), rows, mode="append")

    def read(self, key: int) -> pa.Table:
        if self._iceberg:
            table = open_iceberg(self._folder, "Singers")
            return table.scan(f"SingerId = {key}").to_arrow()
        rows = read_delta(open_table(self._folder, "Singers"))
        return rows.filter(pc.field("SingerId") == key)

    def rename(self, key: int) -> None:
        rows = self.read(key)
        self.delete(key)
        place = rows.column_names.index("LastName")
        names = pa.array(["x"], rows.schema.field(place).type)
        self.append(rows.set_column(place, rows.schema.field(place), names))


DAMAGES: dict[str, tuple[Act, set[tuple[str, object]]]] = {
    "delete": (lambda other: other.delete(123), {("missing", 123)}),
    "update": (lambda other: other.rename(77), {("changed", 77)}),
    "append": (lambda other: other.append(other.read(9)), {("extra", 9)}),
}


@pytest.mark.parametrize("merge", MERGES)
@pytest.mark.parametrize("what", DAMAGES)
def test_changes_and_damage_are_found_by_what_has_changed(
    singers: Database, tmp_path: Path, merge: str, what: str
) -> None:
    start(singers, tmp_path, merge)
    first = prove(singers, tmp_path)
    assert (first.equal, first.rows, first.ranges) == (True, 200, 5)
    assert (progress_of(first).share, progress_of(first).end) == (1.0, last_cut(tmp_path).end)
    write_singers(singers, [3, 50, 51, 300], "later")
    copy_singers(singers, tmp_path, merge)
    second = prove(singers, tmp_path)
    assert (second.equal, progress_of(second).keys) == (True, 4)
    assert second.ranges <= 2, "the rest is not due"
    assert progress_of(second).end == last_cut(tmp_path).end
    damage, expected = DAMAGES[what]
    damage(OtherWriter(tmp_path, merge))
    write_singers(singers, [1], "last")
    copy_singers(singers, tmp_path, merge)
    third = prove(singers, tmp_path)
    assert not third.equal
    assert differences(third) >= expected
    assert {key for _, key in differences(third)} == {key for _, key in expected}
    assert progress_of(third).end != Manifest(str(tmp_path)).find_comparable().end


def test_rows_that_a_compaction_of_iceberg_moves_are_no_changes(
    singers: Database, tmp_path: Path
) -> None:
    start(singers, tmp_path, ICEBERG)
    prove(singers, tmp_path)
    table = open_iceberg(tmp_path, "Singers")
    before = {task.file.file_path for task in table.scan().plan_files()}
    compacted = {"to": f"iceberg:{tmp_path}", "compaction_small_files": 1}
    for keys in (range(20), [5]):
        write_singers(singers, keys, "later")
        replicate(singers, tmp_path, replica=compacted)
    after = {task.file.file_path for task in table.refresh().scan().plan_files()}
    assert not before & after, "all was written anew"
    write_singers(singers, [7], "last")
    replicate(singers, tmp_path, replica=compacted)
    report = prove(singers, tmp_path)
    assert (report.equal, progress_of(report).keys) == (True, 20)


def test_rows_that_are_only_moved_are_no_changes(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    write_singers(singers, range(20), "later")
    copy_singers(singers, tmp_path)
    prove(singers, tmp_path)
    open_table(tmp_path, "Singers").optimize.compact()
    write_singers(singers, [5], "last")
    copy_singers(singers, tmp_path)
    report = prove(singers, tmp_path)
    assert (report.equal, progress_of(report).keys) == (True, 1)


def test_a_difference_stays_until_it_is_repaired(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    before = progress_of(prove(singers, tmp_path)).end
    open_table(tmp_path, "Singers").delete('"SingerId" = 123')
    write_singers(singers, [1], "later")
    copy_singers(singers, tmp_path)
    for _ in range(2):
        report = prove(singers, tmp_path)
        assert (report.equal, progress_of(report).end) in ((False, before), (False, 0))
    source = ("verify", "--to", f"delta:{tmp_path}", "-d", str(address_of(singers)))
    assert run_command(*source, "--repair").returncode == 0
    report = prove(singers, tmp_path)
    assert (report.equal, progress_of(report).end) == (True, last_cut(tmp_path).end)


def test_what_the_copy_was_never_given_is_found_within_the_days(
    singers: Database, tmp_path: Path
) -> None:
    """As if a change had been lost: no commit of the copy says anything of the row."""
    start(singers, tmp_path)
    prove(singers, tmp_path)
    open_table(tmp_path, "Singers").delete('"SingerId" = 123')
    write_singers(singers, [1], "later")
    copy_singers(singers, tmp_path)
    proof, version = read_proof(tmp_path), open_table(tmp_path, "Singers").version()
    end = Manifest(str(tmp_path)).find_comparable().tables["Singers"]
    assert end.version == version
    copy = open_copies("delta", str(tmp_path), CONSUMER)("Singers")
    forged = replace(proof, version=version, copy_end=copy.find_end(version))
    ProofFiles(str(tmp_path)).write("Singers", forged)
    report = prove(singers, tmp_path, within=0.001)
    assert progress_of(report).keys == 0
    assert differences(report) == {("missing", 123)}
    assert progress_of(report).end == 0, "a range differs"
    assert "not proved as a whole" in progress_of(report).text


def test_a_copy_that_was_loaded_again_is_proved_anew(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    prove(singers, tmp_path)
    shutil.rmtree(tmp_path / "Singers")
    copy_singers(singers, tmp_path)
    report = prove(singers, tmp_path)
    assert (report.equal, report.rows) == (True, 200)


def test_a_proof_goes_on_after_a_kill(
    singers: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what has changed meanwhile is compared, too."""
    start(singers, tmp_path)
    monkeypatch.setattr(incremental, "RANGES_A_BATCH", 2)
    kills = iter([None])

    def kill(_: str) -> None:
        if next(kills, True) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(incremental, "failpoint", kill)
    with pytest.raises(KeyboardInterrupt):
        prove(singers, tmp_path)
    proof = read_proof(tmp_path)
    assert [each.at > 0 for each in proof.ranges] == [False, False, False, True, True]
    assert proof.proved_at == 0
    write_singers(singers, [7, 190], "meanwhile")
    copy_singers(singers, tmp_path)
    report = prove(singers, tmp_path)
    assert (report.equal, report.rows, progress_of(report).keys) == (True, 120, 2)
    assert progress_of(report).share == 1.0


def test_too_many_changed_keys_make_their_ranges_due(
    singers: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(singers, tmp_path)
    prove(singers, tmp_path)
    monkeypatch.setattr("watcher.replica.verification.changed_keys.KEYS_MAX", 3)
    write_singers(singers, range(10, 20), "later")
    copy_singers(singers, tmp_path)
    report = prove(singers, tmp_path)
    assert (report.equal, progress_of(report).keys) == (True, 0)
    assert report.ranges >= 1
    assert progress_of(report).end == last_cut(tmp_path).end


@pytest.mark.parametrize("merge", MERGES)
def test_random_histories_are_proved_as_by_a_whole_comparison(
    singers: Database, tmp_path: Path, merge: str
) -> None:
    seed = random.randrange(2**32)
    print("seed", seed)
    chooser = random.Random(seed)
    start(singers, tmp_path, merge, range(60))
    for number in range(5):
        write_singers(singers, [chooser.randrange(80) for _ in range(9)], f"name {number}")
        copy_singers(singers, tmp_path, merge)
        if chooser.random() < 0.5:
            OtherWriter(tmp_path, merge).delete(*(chooser.randrange(80) for _ in range(3)))
        write_singers(singers, [chooser.randrange(80) for _ in range(3)], f"more {number}")
        copy_singers(singers, tmp_path, merge)
        cut = Manifest(str(tmp_path)).find_comparable()
        whole = verify_folder(singers, tmp_path, cut)
        report = prove(singers, tmp_path)
        assert report.equal == whole.equal, (report.to_json(), whole.to_json())


@given(hours=st.integers(1, 40), ranges=st.integers(1, 60), rows=st.integers(0, 100))
def test_every_range_is_due_within_the_days(hours: int, ranges: int, rows: int) -> None:
    """Runs at equal distances: no proof gets older than it may, and the work is spread."""
    week, step = 7 * DAY * SECOND, hours * 3_600 * SECOND
    now = 1_700_000_000 * SECOND
    parts = tuple(ProvedRange((str(n),), rows, now) for n in range(ranges))
    proof = TableProof(now, 1, now, (), now, 7 * DAY, parts)
    for _ in range(3 * 168 // hours):
        now += step
        due = proof.choose_due(now)
        for number in due:
            proof = proof.note(number, [replace(proof.ranges[number], at=now)])
        proof = replace(proof, ran=now, end=now)
        assert min(each.at for each in proof.ranges) >= now - week
        assert proof.measure_share(now) == 1.0
        if rows and ranges * hours >= 168:
            assert len(due) <= 2 + 2 * ranges * hours / 168


def test_a_proof_is_shown_to_operators(singers: Database, tmp_path: Path) -> None:
    start(singers, tmp_path)
    source = ("--to", f"delta:{tmp_path}", "-d", str(address_of(singers)))
    done = run_command("verify", *source, "--incremental", "--within", "2d")
    assert done.returncode == 0, done.stderr
    assert "100 % within 2 days" in done.stdout
    shown = run_command("status", *source)
    assert shown.returncode == 0, shown.stderr
    assert "copier: Singers: proved equal at" in shown.stdout
    (row,) = json.loads(run_command("status", *source, "--json").stdout)["consumers"]
    assert row["proof"]["share"] == 1.0
    reader = make_proof_reader(str(tmp_path))
    overview = Observer(singers, address_of(singers), TABLE, 0.0, read_proofs=reader).read()
    text = json.dumps(describe_overview(overview))
    assert "proved equal at" in text
    samples = {each.name: each.samples for each in collect_tables(overview)}
    (proved,), (share,) = (
        samples[f"spanner_watcher_copy_proved_{name}"] for name in ("seconds", "ratio")
    )
    assert (proved.value, share.value) == (last_cut(tmp_path).end / SECOND, 1.0)
    refused = run_command("verify", *source, "--incremental", "--repair")
    assert refused.returncode == 2
    assert "do not work together" in refused.stderr


def test_a_replica_that_nobody_has_proved_shows_nothing(tmp_path: Path) -> None:
    assert make_proof_reader(str(tmp_path))() == {}


def test_a_proof_gets_old_when_nobody_runs() -> None:
    end = 1_700_000_000 * SECOND
    parts = (ProvedRange(("5",), 30, end), ProvedRange(None, 10, end - round(DAY) * SECOND))
    proof = TableProof(end, 1, end, (), end, DAY, parts)
    assert proof.measure_share(end) == 1.0
    assert proof.measure_share(end + SECOND) == 0.75
    assert "75 % within 1 day" in proof.explain(end + SECOND)
    assert proof.measure_share(end + 2 * round(DAY) * SECOND) == 0.0

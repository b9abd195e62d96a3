"""Every file that the product writes, beside another user of the machine: who reads them, and what
happens where that user has been there first. root plays both: a process of it turns into nobody."""

from __future__ import annotations

import ast
import json
import os
import pwd
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

import pytest
from fixtures.queue_records import account_changes

from emulator.files import open_lock
from emulator.files import replace_file as replace_server_file
from watcher.consumers.positions import FilePositions, Move, Position
from watcher.model.errors import ConfigurationError
from watcher.process.line_files import LineFile, append_line, replace_lines
from watcher.process.private_files import replace_file
from watcher.replica.cuts.owner import Owner, OwnerFile
from watcher.replica.stores.stored_files import open_file_system, write_whole
from watcher.sinks.dead_letters import append_dead_letter
from watcher.sinks.lines import RotatingFile

ROOT = Path(__file__).resolve().parents[2]
NOBODY = "nobody"
SECRET = "the file of another program"
MARKER = "a row"
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, which can be two users: itself and nobody"
)

WRITERS = {
    "watcher/process/private_files.py": "outputs, dead letters, positions, locks, manifests",
    "watcher/replica/delta/files.py": "data files and vectors, for those who may read the table",
    "watcher/replica/iceberg/io.py": "files of Iceberg, for those who may read the table",
    "watcher/replica/delta/change_feed.py": "Parquet in memory, which delta/files.py writes",
    "watcher/replica/iceberg/table.py": "Parquet in memory, which iceberg/io.py writes",
    "watcher/replica/iceberg/position_deletes.py": "the same",
    "watcher/replica/writing/new_files.py": "data files, by delta/files.py or iceberg/io.py",
    "watcher/replica/delta/new_rows.py": "Parquet in memory, which delta/files.py writes",
    "watcher/replica/parquet.py": "Parquet in memory, which stored_files.py writes",
    "watcher/sinks/parquet_files.py": "the same",
    "watcher/replica/stores/stored_files.py": "of an object store; local ones by private_files",
    "watcher/process/terminal/console.py": "/dev/null",
    "watcher/process/forks.py": "/dev/null",
    "watcher/process/spark/class_archive.py": "classes of Java, in the cache of this user, 0700",
    "watcher/process/spark/template_start.py": "a socket in a folder of tempfile, mode 0700",
    "conformance/demo/run.py": "the demo's folder: of tempfile, or a new one of the user's",
    "watcher/process/child_processes.py": "logs of the demo, in its folder",
    "conformance/demo/settings.py": "the demo's settings, in its folder",
    "conformance/demo/writer.py": "what the demo wrote (rows that it made up), in its folder",
    "conformance/cli.py": "a folder of tempfile, mode 0700",
    "ddl/migration/files.py": "SQL of migrations; exclusively, no rows",
    "emulator/files.py": "the server's registry, lock and ready file",
    "emulator/data_directories.py": "the folder of the server, and what is restored into it",
    "emulator/services/backup_store.py": "backups, in the folder of the server",
    "emulator/services/copies.py": "a snapshot, in a new folder of the user's",
    "emulator/services/registry.py": "a folder in the folder of the server",
    "emulator/storage/sqlite.py": "SQLite files in the server's folder, or one of tempfile",
    "emulator/sql/grammar/generate.py": "a table of the sources, by developers",
}
"""Every module of the product that writes files or makes folders, and what."""
WRITING = {
    *("mkdir", "makedirs", "mkdtemp", "TemporaryDirectory", "NamedTemporaryFile", "mkstemp"),
    *("write_text", "write_bytes", "open_output_stream", "create_dir", "write_deltalake"),
    *("write_to_dataset", "write_table", "symlink_to", "symlink", "link", "gettempdir"),
}
READ_MODES = {"r", "rb", "rt"}


def find_writers(source: str) -> list[str]:
    """The calls of a module that write a file or make a folder."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        owner = ast.unparse(called.value) if isinstance(called, ast.Attribute) else ""
        modes = {a.value for a in node.args if isinstance(a, ast.Constant)}
        opens = name == "open" and (owner == "os" or any(is_writing(mode) for mode in modes))
        if opens or (owner and name in WRITING):
            found.append(ast.unparse(node))
    return found


def is_writing(mode: object) -> bool:
    return isinstance(mode, str) and set(mode) <= set("rwxabt+") and mode not in READ_MODES


def test_every_module_that_writes_a_file_is_known() -> None:
    writing = {
        str(path.relative_to(ROOT))
        for package in ("watcher", "ddl", "spanner_schema", "emulator", "conformance")
        for path in (ROOT / package).rglob("*.py")
        if package != "conformance" or path.name == "cli.py" or path.parent.name == "demo"
        if find_writers(path.read_text())
    }
    assert writing == set(WRITERS)


def as_nobody(action: Callable[[], object]) -> bool:
    """Whether another user can do something, in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            user = pwd.getpwnam(NOBODY)
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            action()
        except PermissionError:
            os._exit(1)
        except BaseException:  # noqa: BLE001  (the process ends here)
            os._exit(2)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 1), "the other user's own action failed"
    return code == 0


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder in which everybody may write, reached by everybody."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        folder = Path(name) / "shared"
        folder.mkdir()
        folder.chmod(0o777)
        before = os.umask(0)
        try:
            yield folder
        finally:
            os.umask(before)


def write_positions(path: Path) -> None:
    positions = FilePositions(path)
    positions.save_all([Move(Position("c", MARKER, 1), None)])


def write_output(path: Path) -> None:
    sink = RotatingFile(path, None)
    sink.write_change(account_changes(1)[0])
    sink.flush()
    sink.close()


def write_dead_letters(path: Path) -> None:
    append_dead_letter(path, account_changes(1)[0], MARKER)


def replay_letters(path: Path) -> None:
    append_line(path, json.dumps({"number": 1}))
    replace_lines(path, path.read_text(), [json.dumps({"number": 2})])


FILES: dict[str, Callable[[Path], None]] = {
    "positions": write_positions,
    "output": write_output,
    "dead letters": write_dead_letters,
    "replay": replay_letters,
    "any file that is replaced": lambda path: replace_file(path, MARKER),
    "the server's registry": lambda path: replace_server_file(path, MARKER),
    "the server's lock": lambda path: open_lock(path).close(),
}
PARTS = ("", ".lock", ".new", ".PID.new", ".part")
"""What names of files that are written may end in; PID is the number of the process."""


@needs_root
@pytest.mark.parametrize("name", FILES)
def test_nobody_else_reads_or_changes_what_is_written(name: str, shared: Path) -> None:
    """With umask 0, in a folder that is there."""
    FILES[name](shared / "file")
    written = list(shared.iterdir())
    assert written
    for path in written:
        assert not as_nobody(path.read_bytes), path
        assert not as_nobody(partial(os.open, path, os.O_WRONLY)), path


@needs_root
@pytest.mark.parametrize("name", ["positions", "output", "dead letters"])
def test_folders_that_are_made_are_for_nobody_else(name: str, shared: Path) -> None:
    FILES[name](shared / "made" / "deeper" / "file")
    assert not as_nobody(lambda: os.listdir(shared / "made"))


@needs_root
@pytest.mark.parametrize("ending", PARTS)
@pytest.mark.parametrize("name", FILES)
def test_a_link_of_another_user_leads_nowhere(name: str, ending: str, shared: Path) -> None:
    victim = shared.parent / "victim"
    victim.write_text(SECRET)
    link = shared / f"file{ending.replace('PID', str(os.getpid()))}"
    assert as_nobody(lambda: link.symlink_to(victim))
    # It may be refused; what counts is that nothing is written through it.
    with suppress(ConfigurationError, OSError):
        FILES[name](shared / "file")
    assert victim.read_text() == SECRET
    assert stat.S_IMODE(victim.stat().st_mode) == 0o666


@needs_root
@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("positions", "file"),
        ("positions", "file.lock"),
        ("output", "file"),
        ("dead letters", "file"),
    ],
)
def test_a_file_that_another_user_has_made_is_not_used(name: str, file: str, shared: Path) -> None:
    """Its owner would read the rows, or choose the positions."""
    path = shared / file
    assert as_nobody(lambda: path.write_text(""))
    with pytest.raises(ConfigurationError, match="belongs to another user"):
        FILES[name](shared / "file")
    assert path.read_text() == ""


@needs_root
def test_files_of_a_replica_are_in_a_folder_of_its_own(shared: Path) -> None:
    folder = shared / "replica"
    owner = OwnerFile(str(folder))
    owner.claim(Owner("d", "c", "delta"))
    files, base = open_file_system(str(folder))
    write_whole(files, PurePosixPath(base), "cut.json", b"{}")
    assert not as_nobody(lambda: os.listdir(folder))


@needs_root
def test_a_file_that_is_replaced_keeps_its_owner_and_mode(shared: Path) -> None:
    path = shared / "file"
    assert as_nobody(lambda: path.write_text('{"number": 1}\n'))
    shared.chmod(0o755)  # it is not shared any more: the owner of the file is trusted
    path.chmod(0o640)
    replay_letters(path)
    user = pwd.getpwnam(NOBODY)
    assert path.stat().st_uid == user.pw_uid
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_an_own_link_is_followed_and_stays(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "letters"
    link.symlink_to(Path("disk") / "letters")
    replay_letters(link)
    assert link.is_symlink()
    assert json.loads((tmp_path / "disk" / "letters").read_text()) == {"number": 2}
    file = LineFile(link)
    file.append(['{"number": 3}'])
    file.sync()
    file.close()
    assert len((tmp_path / "disk" / "letters").read_text().splitlines()) == 2

"""The section [page] of a watcher's file: the page beside the watcher, and of its own."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures.browser import wait_until
from fixtures.commands import PROGRAM, SECONDS, run_command, run_in_terminal
from fixtures.consumers import consumers_of, watcher_of, write
from fixtures.pages import Page, read_link
from fixtures.singers import address_of
from google.cloud.spanner_v1.database import Database

from watcher.consumers.states import Command, State
from watcher.runners.preflight import check
from watcher.settings.watcher import parse_watch_config

LISTENS = re.compile(r"the page listens on port (\d+) of 127.0.0.1")
HIDDEN = re.compile(r"the page at http://\S+:(\d+)/ asks for a random token")


def write_file(folder: Path, database: Database, page: str, more: str = "") -> str:
    """A watcher's file with these lines in its section."""
    file = folder / "watch.toml"
    file.write_text(
        f'''
        database = "{address_of(database)}"
        consumer = "me"
        tables = ["Singers"]
        start = "earliest"
        interval = "20ms"
        lease = "1s"
        {more}
        [delivery]
        to = "{folder / "changes.jsonl"}"
        [page]
        port = 0
        every = "200ms"
        staleness = "0s"
        {page}
        '''
    )
    return str(file)


@contextmanager
def run_watch(file: str, announcement: re.Pattern[str]) -> Iterator[tuple[Page, str]]:
    """``watch`` until the block ends, once its log has told of the page; the page and that line."""
    with subprocess.Popen(
        [*PROGRAM, "watch", "--config", file, "--verbose"], stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines: list[str] = []
        try:
            match = None
            for line in process.stderr:
                lines.append(line)
                if match := announcement.search(line):
                    break
            assert match is not None, "".join(lines)
            yield Page(f"http://127.0.0.1:{match.group(1)}", None, process), lines[-1]
        finally:
            process.send_signal(signal.SIGTERM)
            errors = process.stderr.read()
            assert process.wait(SECONDS) == 0, errors


def test_a_watcher_serves_the_page_beside_its_work(music: Database, tmp_path: Path) -> None:
    write(music, 1, 2, 3)
    with run_watch(write_file(tmp_path, music, ""), LISTENS) as (page, _):
        wait_until(lambda: page.get("/readyz").status == 200, "the page has read")

        def find_delivered() -> bool:
            (consumer,) = page.get("/api/status").json["consumers"]
            return bool(consumer["delivered_rows"] == 3 and consumer["lag_rows"]["rows"] == 0)

        wait_until(find_delivered, "the page shows what was delivered")
        (consumer,) = page.get("/api/status").json["consumers"]
        assert (consumer["consumer"], consumer["state"], consumer["alive"]) == (
            "me",
            "RUNNING",
            True,
        )
        assert 'state="RUNNING"} 1.0' in page.get("/metrics").text
        body = {"consumer": "me", "command": "pause"}
        assert page.post("/api/commands", body, Origin=page.address).status == 403
    assert len((tmp_path / "changes.jsonl").read_text().splitlines()) == 3


def test_the_page_beside_a_watcher_commands_it(music: Database, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-that-nobody-guesses")
    file = write_file(tmp_path, music, f'control = true\ntoken_file = "{token}"')
    with run_watch(file, LISTENS) as (page, _):
        body = {"consumer": "me", "command": "pause"}
        assert page.post("/api/commands", body, Origin=page.address).status == 401
        bearer = f"Bearer {token.read_text()}"
        assert page.post("/api/commands", body, Authorization=bearer).status == 200

        def find_paused() -> bool:
            status = consumers_of(music).status("me")
            return status is not None and status.state is State.PAUSED

        wait_until(find_paused, "the consumer is paused")


@pytest.mark.parametrize("section", ['host = "0.0.0.0"', "control = true"])
def test_beside_a_watcher_without_a_terminal_nobody_learns_a_random_token(
    music: Database, tmp_path: Path, section: str
) -> None:
    with run_watch(write_file(tmp_path, music, section), HIDDEN) as (page, line):
        assert "level=warning" in line
        assert "token_file in [page]" in line
        assert page.get("/api/status").status == 401
        page.process.send_signal(signal.SIGTERM)
        assert page.process.stderr is not None
        assert "token=" not in page.process.stderr.read()


def test_a_token_of_a_file_is_not_logged(music: Database, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-that-nobody-guesses")
    file = write_file(tmp_path, music, f'token_file = "{token}"')
    with run_watch(file, LISTENS) as (page, _):
        assert page.get("/api/status").status == 401
        bearer = f"Bearer {token.read_text()}"
        assert page.get("/api/status", Authorization=bearer).status == 200
        page.process.send_signal(signal.SIGTERM)
        assert page.process.stderr is not None
        assert token.read_text() not in page.process.stderr.read()


def test_on_a_terminal_the_watcher_says_where_the_page_is(music: Database, tmp_path: Path) -> None:
    output = run_in_terminal(100, "watch", "--config", write_file(tmp_path, music, ""), "--once")
    assert re.search(r"the page is at http://127\.0\.0\.1:\d+/$", output, re.M)


def test_the_command_takes_the_section_and_flags_override_it(
    music: Database, tmp_path: Path
) -> None:
    watcher_of(music, [], consumer="me").run_once()
    token = tmp_path / "token"
    token.write_text("a-token-that-nobody-guesses")
    file = write_file(tmp_path, music, f'control = true\ntoken_file = "{token}"')
    with read_link("page", "--config", file) as page:
        body = {"consumer": "me", "command": "drain"}
        answer = page.post("/api/commands", body, Authorization=f"Bearer {token.read_text()}")
        assert answer.status == 200, answer.text
        assert consumers_of(music).command("me") is Command.DRAIN
    with read_link("page", "--config", file, "--host", "0.0.0.0") as page:
        assert "127.0.0.1" not in page.address


@pytest.mark.parametrize(
    ("page", "more", "message"),
    [
        ("prot = 1", "", "unknown option 'prot'; did you mean 'port'?"),
        ("control = 3", "", "option 'page.control': 3 is neither true nor false"),
        ("token_file = 3", "", "option 'page.token_file': 3 is no path"),
        ('token_file = "nowhere"', "", "cannot read nowhere"),
        ('host = "192.0.2.1"', "", "cannot listen on 192.0.2.1"),
        ("", 'positions = { keep = "memory" }', "the page needs positions.keep = 'spanner'"),
        (
            "",
            'positions.database = "projects/p1/instances/i1/databases/other"',
            "the page shows one database",
        ),
    ],
)
@pytest.mark.parametrize("command", ["watch", "page"])
def test_a_section_that_makes_no_sense_is_refused(
    music: Database, tmp_path: Path, command: str, page: str, more: str, message: str
) -> None:
    result = run_command(command, "--config", write_file(tmp_path, music, page, more))
    assert result.returncode == 2, result.stderr
    assert message in result.stderr


@pytest.mark.parametrize(
    ("positions", "message"),
    [
        ('keep = "memory"', "the page needs positions.keep = 'spanner'"),
        (
            'database = "projects/p1/instances/i1/databases/other"',
            "--database spanner://projects/p1/",
        ),
    ],
)
def test_a_file_without_the_section_is_refused_where_the_page_would_find_no_positions(
    music: Database, tmp_path: Path, positions: str, message: str
) -> None:
    file = tmp_path / "watch.toml"
    file.write_text(f'database = "{address_of(music)}"\n[positions]\n{positions}\n')
    result = run_command("page", "--config", str(file))
    assert result.returncode == 2, result.stderr
    assert message in result.stderr


@pytest.mark.parametrize("command", ["watch", "page", "check"])
def test_a_database_that_is_not_named_is_an_error_that_says_how(command: str) -> None:
    result = run_command(command)
    assert result.returncode == 2
    assert "'database' is missing: name it with --database" in result.stderr


def test_a_port_that_is_taken_ends_the_watcher(music: Database, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        file = write_file(tmp_path, music, "")
        text = Path(file).read_text().replace("port = 0", f"port = {taken.getsockname()[1]}")
        Path(file).write_text(text)
        result = run_command("watch", "--config", file)
    assert result.returncode == 2
    assert "Address already in use" in result.stderr
    status = consumers_of(music).status("me")
    assert status is None or not status.alive


def test_preflight_says_what_the_page_lacks(music: Database, tmp_path: Path) -> None:
    options = {"database": str(address_of(music)), "tables": ["Singers"]}
    short = tmp_path / "token"
    short.write_text("short")
    config = parse_watch_config({**options, "page": {"token_file": str(short)}})
    (finding,) = [each for each in check(config) if each.name == "page"]
    assert not finding.ok
    assert "at least 16" in finding.detail
    config = parse_watch_config({**options, "page": {}})
    (finding,) = [each for each in check(config) if each.name == "page"]
    assert finding.ok
    assert "127.0.0.1, port 8765" in finding.detail

"""The live page over HTTP: what it says, whom it answers, and what it changes."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import PROGRAM, run_command, run_in_terminal
from fixtures.consumers import consumers_of, watcher_of, write
from fixtures.pace import allow
from fixtures.pages import Page, read_link, serve_page
from fixtures.server import connect, spawn
from fixtures.singers import SINGERS, address_of, make_watchable
from fixtures.warm_python import WARM_PYTHON, WarmProcess
from google.cloud.spanner_v1.database import Database

from watcher.consumers.states import Command, ConsumerProgress, State

SCRIPTS = ("elements.js", "figures.js", "page.js")
SECONDS = 60
TOKEN = "a-token-that-nobody-guesses"


@pytest.fixture
def page(music: Database) -> Iterator[Page]:
    write(music, 1, 2, 3)
    watcher_of(music, [], consumer="me").run_once()
    write(music, 3)
    with serve_page(music) as served:
        yield served


@pytest.fixture
def guarded(music: Database, tmp_path: Path) -> Iterator[Page]:
    """A page that asks for a token and takes commands."""
    consumers_of(music).create()
    lease = consumers_of(music).acquire("me", 600.0)
    consumers_of(music).renew(lease, State.RUNNING, ConsumerProgress())
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    with serve_page(music, "--control", "--token-file", str(file)) as served:
        yield served


def status_rows(database: Database) -> list[dict[str, Any]]:
    """What ``status --json`` says of each table of each consumer."""
    result = run_command("status", "-d", str(address_of(database)), "--json")
    rows: list[dict[str, Any]] = json.loads(result.stdout)["consumers"]
    return rows


@pytest.mark.both_dialects
def test_the_page_says_what_status_says(page: Page, music: Database) -> None:
    answer = page.get("/api/status").json
    (row,) = status_rows(music)
    (consumer,) = answer["consumers"]
    (table,) = consumer["tables"]
    same = ("consumer", "state", "alive", "ended_at", "reason", "delivered_rows", "dead_letters")
    assert {name: consumer[name] for name in same} == {name: row[name] for name in same}
    assert (table["table"], table["position"]) == (row["table"], row["position"])
    assert table["lag_rows"] == {"rows": row["lag_rows"], "at_least": False}
    assert row["lag_rows"] == 1


def test_the_page_has_its_first_data_inside_and_loads_nothing_from_elsewhere(page: Page) -> None:
    answer = page.get("/")
    (text,) = re.findall(r'<script type="application/json" id="first">(.*?)</script>', answer.text)
    assert json.loads(text)["consumers"][0]["consumer"] == "me"
    loaded = re.findall(r'(?:src|href)="([^"#][^"]*)"', answer.text)
    assert set(loaded) == {"icon.svg", "page.css", *SCRIPTS, "metrics"}
    for path in loaded:
        asset = page.get(f"/{path}")
        assert asset.status == 200
        assert "http" not in asset.text.replace("http://www.w3.org/2000/svg", "")
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_probes_and_metrics(page: Page) -> None:
    assert page.get("/healthz").text == "ok\n"
    assert page.get("/readyz").text == "ready\n"
    metrics = page.get("/metrics").text
    assert 'spanner_watcher_consumer_rows_behind{consumer="me",table="Singers"} 1.0' in metrics
    assert 'spanner_watcher_consumer_state{consumer="me",state="STOPPED"} 1.0' in metrics


def test_a_page_that_cannot_read_is_not_ready_and_says_so() -> None:
    with spawn() as server:
        instance = connect(server.address)
        database = instance.database("music", ddl_statements=[SINGERS])
        database.create().result(SECONDS)
        make_watchable(database)
        watcher_of(database, [], consumer="me").run_once()
        with serve_page(database) as page:
            assert page.get("/readyz").status == 200
            server.kill()
            until = time.monotonic() + SECONDS
            while page.get("/readyz").status == 200:
                assert time.monotonic() < until
            assert page.get("/healthz").status == 200
            answer = page.get("/api/status").json
            assert answer["failure"]
            assert answer["consumers"][0]["consumer"] == "me"
            assert answer["age_seconds"] >= 15


def test_commands_are_off_unless_they_are_allowed(page: Page, music: Database) -> None:
    body = {"consumer": "me", "command": "pause"}
    answer = page.post("/api/commands", body, Origin=page.address)
    assert answer.status == 403
    assert "--control" in answer.json["error"]
    assert consumers_of(music).command("me") is None


def test_another_site_cannot_send_requests(page: Page) -> None:
    body = {"table": "Singers"}
    assert page.post("/api/count", body, Origin="http://evil.example").status == 403
    assert page.post("/api/count", body, Origin="null").status == 403
    assert page.post("/api/count", body).status == 403
    assert page.post("/api/count", body, Sec_Fetch_Site="cross-site").status == 403
    assert page.post("/api/count", body, Sec_Fetch_Site="same-origin").status == 200
    answer = page.post("/api/count", body, Origin=page.address)
    assert (answer.json["rows"], answer.json["clearable"]) == (3, 2)


def test_another_name_for_this_machine_is_refused(page: Page) -> None:
    """A site whose name resolves to 127.0.0.1 would be of the same origin."""
    assert page.get("/api/status", Host="evil.example").status == 403
    assert page.get("/", Host="localhost:1").status == 200


@pytest.mark.parametrize("path", ["/", "/api/status", "/metrics", "/page.js"])
def test_nothing_is_shown_without_the_token(guarded: Page, path: str) -> None:
    assert guarded.get(path).status == 401
    assert guarded.get(path, Authorization="Bearer wrong").status == 401
    assert guarded.get(path, Cookie="spanner_watcher_page=wrong").status == 401
    assert guarded.get(f"{path}?token=wrong").status == 401
    assert guarded.get(path, Authorization=f"Bearer {TOKEN}").status == 200


def test_the_link_with_the_token_leads_to_one_without(guarded: Page) -> None:
    answer = guarded.get(f"/?token={TOKEN}")
    room, cookie = answer.headers["Location"], answer.headers["Set-Cookie"]
    assert answer.status == 303
    assert TOKEN not in room
    assert "HttpOnly" in cookie
    assert "SameSite" in cookie
    assert guarded.get(f"{room}api/status", Cookie=cookie.partition(";")[0]).status == 200
    assert guarded.get("/healthz").status == 200


@pytest.mark.both_dialects
def test_commands_reach_the_consumer(guarded: Page, music: Database) -> None:
    body = {"consumer": "me", "command": "drain"}
    opened = guarded.get(f"/?token={TOKEN}").headers
    commands, cookie = opened["Location"] + "api/commands", opened["Set-Cookie"].partition(";")[0]
    assert guarded.post(commands, body, Cookie=cookie).status == 403
    assert guarded.post(commands, body, Cookie=cookie, Origin="http://a.b").status == 403
    assert consumers_of(music).command("me") is None
    assert guarded.post(commands, body, Cookie=cookie, Origin=guarded.address).status == 200
    assert consumers_of(music).command("me") is Command.DRAIN
    bearer = f"Bearer {TOKEN}"
    resume = body | {"command": "resume"}
    assert guarded.post("/api/commands", resume, Authorization=bearer).status == 200
    assert consumers_of(music).command("me") is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"consumer": "you", "command": "stop"}, 404),
        ({"consumer": "me", "command": "explode"}, 400),
        ({"command": "stop"}, 400),
        ({"consumer": 1, "command": "stop"}, 400),
        ([], 400),
    ],
)
def test_commands_that_make_no_sense_are_refused(guarded: Page, body: object, status: int) -> None:
    answer = guarded.post("/api/commands", body, Authorization=f"Bearer {TOKEN}")
    assert answer.status == status
    assert answer.json["error"]


def test_requests_that_the_page_does_not_know(page: Page) -> None:
    assert page.get("/nothing").status == 404
    assert page.get("/../page.html").status == 404
    assert page.get("/api/commands").status == 405
    assert page.post("/api/status", {}, Origin=page.address).status == 405
    assert page.send("HEAD", "/", None, {}).text == ""
    wrong = page.send("POST", "/api/count", b"{", {"Origin": page.address})
    assert wrong.status == 400


@pytest.mark.parametrize("arguments", [("--host", "0.0.0.0"), ("--control",)])
def test_a_random_token_is_in_no_log(music: Database, arguments: tuple[str, ...]) -> None:
    command = ["page", "-d", str(address_of(music)), "--port", "0", *arguments]
    with read_link(*command) as served:
        assert served.token is None
        assert served.get("/api/status").status == 401
        assert served.get("/healthz").status == 200
        served.process.send_signal(signal.SIGTERM)
        assert served.process.stderr is not None
        assert "shown on a terminal alone" in served.process.stderr.read()


def test_a_terminal_shows_the_random_token(music: Database) -> None:
    """Another one each time."""
    command = ["page", "-d", str(address_of(music)), "--port", "0", "--control"]
    tokens = set()
    for _ in range(2):
        output = run_in_terminal(200, *command, until="Ctrl-C stops it")
        tokens |= set(re.findall(r"/\?token=([\w-]{40,})", output))
    assert len(tokens) == 2


def test_a_page_on_loopback_asks_for_no_token(page: Page) -> None:
    assert page.token is None


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--host", "192.0.2.1"), 2, "cannot listen on 192.0.2.1"),
        (("--every", "0s"), 2, "--every"),
        (("--staleness", "soon"), 2, "invalid duration"),
    ],
)
def test_what_cannot_be_served_is_refused(
    music: Database, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = run_command("page", "-d", str(address_of(music)), "--port", "0", *arguments)
    assert result.returncode == code, result.stderr
    assert message in result.stderr


def test_a_token_that_can_be_guessed_is_refused(music: Database, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("short")
    result = run_command("page", "-d", str(address_of(music)), "--token-file", str(file))
    assert result.returncode == 2
    assert "at least 16" in result.stderr


@pytest.mark.usefixtures("server")
def test_a_database_that_does_not_exist_ends_the_command() -> None:
    address = "spanner://projects/test-project/instances/test-instance/databases/nothing"
    assert run_command("page", "-d", address, "--port", "0").returncode == 4


def test_a_signal_before_the_first_read_is_over_ends_the_command() -> None:
    """As process 1 of a container it would otherwise be ignored."""
    database = "spanner://projects/p1/instances/i1/databases/d1"
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        process = WarmProcess(
            [*PROGRAM[len(WARM_PYTHON) :], "page", "-d", database, "--port", "0"],
            env=os.environ | {"SPANNER_EMULATOR_HOST": address},
        )
        with silent.accept()[0]:
            process.send_signal(signal.SIGTERM)
            assert process.wait(allow(SECONDS)) == 0

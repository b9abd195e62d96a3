"""The live page in a browser: what it shows after it has polled is what ``status --json`` says."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fixtures.commands import SECONDS, run_command
from fixtures.consumers import consumers_of, watcher_of, write, write_both
from fixtures.pages import Page, serve_page
from fixtures.singers import address_of
from fixtures.watcher_threads import run_in_thread
from google.cloud.spanner_v1.database import Database

from watcher.consumers.states import Command, ConsumerStatus, State

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


class Document(HTMLParser):
    """The cells of the page: those of a consumer by field, with value and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.polls = 0
        self.values: dict[tuple[str, str], Any] = {}
        self.texts: dict[tuple[str, str], str] = {}
        self.buttons: set[tuple[str, str]] = set()
        self._consumer = ""
        self._field = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """As the library's."""
        named = {name: value or "" for name, value in attrs}
        if tag == "body":
            self.polls = int(named.get("data-polls", "0"))
        if tag == "tr":
            self._consumer = named.get("data-consumer", "")
        if tag == "td" and self._consumer:
            self._field = named.get("data-field", "")
            if "data-value" in named:
                self.values[self._consumer, self._field] = json.loads(named["data-value"])
        if tag == "button" and self._consumer:
            self.buttons.add((self._consumer, named.get("data-act", "")))

    def handle_data(self, data: str) -> None:
        """As the library's."""
        if self._consumer and self._field and data.strip():
            place = (self._consumer, self._field)
            self.texts[place] = f"{self.texts.get(place, '')} {data.strip()}".strip()

    def handle_endtag(self, tag: str) -> None:
        """As the library's."""
        if tag == "td":
            self._field = ""
        if tag == "tr":
            self._consumer = ""


def open_in_browser(page: Page, folder: Path, *options: str) -> str:
    """The DOM of the page after it has polled a few times."""
    assert CHROMIUM is not None
    result = subprocess.run(
        [
            *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"),
            *(f"--user-data-dir={folder}", "--virtual-time-budget=5000", *options),
            *("--dump-dom", page.link),
        ],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return result.stdout


def status_of(database: Database) -> dict[str, dict[str, Any]]:
    """What ``status --json`` says, by consumer."""
    result = run_command("status", "-d", str(address_of(database)), "--json")
    return {row["consumer"]: row for row in json.loads(result.stdout)["consumers"]}


def wait_for(database: Database, consumer: str, state: State) -> ConsumerStatus:
    """The consumer when it has stored this state."""
    for _ in range(10_000):
        status: ConsumerStatus | None = consumers_of(database).status(consumer)
        if status is not None and status.state is state:
            return status
    raise AssertionError(f"{consumer} is not {state}")


def test_the_page_shows_what_status_says_while_a_watcher_runs(
    music: Database, tmp_path: Path
) -> None:
    write(music, *range(10))
    watcher_of(music, [], consumer="ended").run_once()
    consumers_of(music).create()
    with run_in_thread(watcher_of(music, [], consumer="running", lease="1s")):
        wait_for(music, "running", State.RUNNING)
        consumers_of(music).ask("running", Command.PAUSE)  # its position stays where it is
        wait_for(music, "running", State.PAUSED)
        for key in range(7):
            write_both(music, key)
        with serve_page(music) as page:
            document = Document(open_in_browser(page, tmp_path))
        status = status_of(music)
    assert document.polls >= 1
    assert {consumer for consumer, _ in document.values} == set(status) == {"ended", "running"}
    for name, row in status.items():
        for field in ("state", "lag_rows", "delivered_rows"):
            assert document.values[name, field] == row[field], (name, field)
    assert document.texts["running", "state"].startswith("paused")
    assert document.texts["running", "lag_rows"] == "7"
    assert document.texts["ended", "lag_seconds"] == "\u2013"
    assert "nothing is lost" in document.texts["running", "loss"]
    assert document.buttons == {("running", "open"), ("ended", "open")}


def test_buttons_are_there_when_commands_are_allowed(music: Database, tmp_path: Path) -> None:
    consumers_of(music).create()
    with run_in_thread(watcher_of(music, [], consumer="me", lease="1s")):
        wait_for(music, "me", State.RUNNING)
        with serve_page(music, "--control") as page:
            document = Document(open_in_browser(page, tmp_path))
    acts = {act for _, act in document.buttons}
    assert acts == {"open", "pause", "drain", "stop"}


def test_the_browser_reports_no_error_and_loads_nothing_from_elsewhere(
    music: Database, tmp_path: Path
) -> None:
    write(music, 1)
    watcher_of(music, [], consumer="me").run_once()
    log = tmp_path / "net.json"
    with serve_page(music) as page:
        dom = open_in_browser(page, tmp_path / "profile", f"--log-net-log={log}")
    assert re.search(r'<p id="alert"[^>]*hidden', dom)
    asked = set(re.findall(r'"url":"(https?://[^"]+)"', log.read_text()))
    own = {address for address in asked if address.startswith(page.address)}
    pages = {address.removeprefix(page.address).partition("?")[0] for address in own}
    assert {"/", "/page.css", "/page.js", "/api/status"} <= pages
    assert not [a for a in asked - own if not re.search(r"//[^/]*\.(google|googleapis|gvt1)\.", a)]

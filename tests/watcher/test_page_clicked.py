"""The live page, used as a person uses it: clicked, by keyboard, on a desktop and on a phone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fixtures.browser import NEEDS_BROWSER, Browser, open_browser, wait_until
from fixtures.commands import run_command
from fixtures.consumers import consumers_of, options, watcher_of, write, write_both
from fixtures.pages import Page, serve_page
from fixtures.singers import address_of
from fixtures.watcher_threads import run_in_thread
from google.cloud.spanner_v1.database import Database

from watcher import Change, Watcher
from watcher.consumers.audit import read_audit
from watcher.consumers.positions import TABLE
from watcher.consumers.states import Command, State

pytestmark = NEEDS_BROWSER
NETWORK = ("http", "https", "ws", "wss", "ftp")
DESKTOP, PHONE = 1280, 400
SECONDS = 60
DESCRIBE_FOCUS = """
const focused = document.activeElement;
if (!focused || focused === document.body) return null;
const act = focused.dataset.act;
return [act ? `${act} ${focused.dataset.name}` : focused.id || focused.tagName,
        parseFloat(getComputedStyle(focused).outlineWidth)];
"""
LIST_CONTROLS = """
return [...document.querySelectorAll("button, summary, a[href]")]
  .filter((each) => each.checkVisibility())
  .map(({ dataset: { act, name }, id, tagName }) => act ? `${act} ${name}` : id || tagName);
"""


@contextmanager
def browse(database: Database, folder: Path, *arguments: str) -> Iterator[tuple[Page, Browser]]:
    """The page of a database in a browser."""
    with serve_page(database, *arguments) as page, open_browser(folder) as browser:
        browser.show_as(DESKTOP, "light")
        browser.open(page.link)
        browser.wait_for("return Number(document.body.dataset.polls) > 0")
        yield page, browser


def status_of(database: Database, consumer: str) -> dict[str, Any]:
    """What ``status --json`` says of a consumer."""
    result = run_command("status", "-d", str(address_of(database)), "--json")
    (row,) = [r for r in json.loads(result.stdout)["consumers"] if r["consumer"] == consumer]
    return dict(row)


def wait_for_state(database: Database, state: State, consumer: str = "me") -> None:
    def is_reached() -> bool:
        status = consumers_of(database).status(consumer)
        return status is not None and status.state is state

    wait_until(is_reached, f"{consumer} is not {state}")


def button(act: str, consumer: str = "me") -> str:
    """The selector of a button."""
    return f'button[data-act="{act}"][data-name="{consumer}"]'


def shown_state(browser: Browser, consumer: str = "me") -> str:
    """The state that the page shows."""
    script = "return document.querySelector(arguments[0])?.dataset.value || '\"\"'"
    text = browser.run(script, f'tr[data-consumer="{consumer}"] td[data-field="state"]')
    return str(json.loads(text))


def test_a_consumer_obeys_the_buttons(music: Database, tmp_path: Path) -> None:
    consumers_of(music).create()
    seen: list[Change] = []
    write(music, 1)
    with run_in_thread(watcher_of(music, seen, consumer="me", lease="1s")) as raised:
        wait_until(lambda: len(seen) == 1, "the first row")
        with browse(music, tmp_path, "--control") as (_, browser):
            browser.click(button("pause"))
            wait_for_state(music, State.PAUSED)
            write(music, 2)
            status = status_of(music, "me")
            assert (status["state"], status["lag_rows"], status["delivered_rows"]) == (
                "PAUSED",
                1,
                1,
            )
            wait_until(lambda: shown_state(browser) == "PAUSED", "the page shows PAUSED")

            browser.click(button("resume"))
            wait_until(lambda: len(seen) == 2, "the second row")
            wait_until(lambda: status_of(music, "me")["lag_rows"] == 0, "nothing is behind")
            assert status_of(music, "me")["state"] == "RUNNING"

            browser.click(button("drain"))
            browser.wait_for("return document.getElementById('confirm').open")
            browser.press("Escape")
            browser.wait_for("return !document.getElementById('confirm').open")
            assert consumers_of(music).command("me") is None
            write(music, 3)
            browser.click(button("drain"))
            browser.click("#confirm-yes")
            wait_for_state(music, State.STOPPED)
            wait_until(lambda: shown_state(browser) == "STOPPED", "the page shows STOPPED")
    assert raised == []
    assert [change.key["SingerId"] for change in seen] == [1, 2, 3]
    status = status_of(music, "me")
    assert (status["state"], status["lag_rows"]) == ("STOPPED", 0)
    assert status["reason"] == "an operator sent the command drain"


def test_a_consumer_stops_when_stop_is_clicked(music: Database, tmp_path: Path) -> None:
    consumers_of(music).create()
    seen: list[Change] = []
    with run_in_thread(watcher_of(music, seen, consumer="me", lease="1s")) as raised:
        wait_for_state(music, State.RUNNING)
        with browse(music, tmp_path, "--control") as (_, browser):
            browser.click(button("stop"))
            browser.click("#confirm-yes")
            wait_for_state(music, State.STOPPED)
    write(music, 1)
    assert (raised, seen) == ([], [])
    status = status_of(music, "me")
    assert status["reason"] == "an operator sent the command stop"
    assert (status["state"], status["lag_rows"]) == ("STOPPED", 1)


def test_a_consumer_replays_its_dead_letters_when_replay_is_clicked(
    music: Database, tmp_path: Path
) -> None:
    consumers_of(music).create()
    refuses = [True]
    seen: list[object] = []

    def take(change: Change) -> None:
        if refuses[0]:
            raise RuntimeError("not yet")
        seen.append(change.key["SingerId"])

    delivery = {
        "retries": 0,
        "backoff": 0,
        "then": "skip",
        "dead_letters": tmp_path / "dead.jsonl",
    }
    settings = options(music, consumer="me", lease="1s", delivery=delivery)
    watcher = Watcher(**settings)
    watcher.on_change(take)
    write(music, 1, 2)
    with run_in_thread(watcher) as raised:
        wait_for_state(music, State.RUNNING)
        with browse(music, tmp_path / "profile", "--control") as (_, browser):
            browser.wait_for(f"return document.querySelector('{button('replay')}') !== null")
            refuses[0] = False
            browser.click(button("replay"))
            browser.wait_for("return document.getElementById('confirm').open")
            assert seen == []
            browser.click("#confirm-yes")
            wait_until(lambda: sorted(seen, key=str) == [1, 2], "the dead letters")
            browser.wait_for(f"return document.querySelector('{button('replay')}') === null")
    assert raised == []
    (entry,) = read_audit(music, TABLE, "me", 10)
    assert (entry.action, entry.result) == ("replay", "done")
    assert entry.who.startswith("page of ")


def tab_through(browser: Browser) -> list[tuple[str, float]]:
    """What the focus is on, from the first Tab until it leaves the page; with the width of the
    outline that shows it."""
    stops = []
    for _ in range(100):
        browser.press("Tab")
        focus = browser.run(DESCRIBE_FOCUS)
        if focus is None:
            break
        stops.append((focus[0], focus[1]))
        if len(stops) > 1 and stops[-1] == stops[0]:
            break
    return stops


def test_every_control_is_reached_by_keyboard_and_works(music: Database, tmp_path: Path) -> None:
    consumers_of(music).create()
    write(music, 1)
    with run_in_thread(watcher_of(music, [], consumer="me", lease="1s")):
        wait_for_state(music, State.RUNNING)
        with browse(music, tmp_path, "--control") as (page, browser):
            controls = browser.run(LIST_CONTROLS)
            stops = tab_through(browser)
            assert {"theme", "open me", "pause me", "drain me", "stop me"} <= set(controls)
            assert set(controls) <= {name for name, _ in stops}
            assert all(outline >= 2 for _, outline in stops), stops

            browser.open("about:blank")
            browser.open(page.link)
            browser.wait_for("return Number(document.body.dataset.polls) > 0")
            for name, _ in stops:
                browser.press("Tab")
                if name == "pause me":
                    break
            browser.press("Enter")
            wait_for_state(music, State.PAUSED)


@pytest.fixture
def four_consumers(music: Database) -> Iterator[Database]:
    """One runs, one is paused, one has ended, and one reads a change stream and is stuck in its
    callback."""
    operation = music.update_ddl(["CREATE CHANGE STREAM Everything FOR ALL"])
    operation.result(SECONDS)
    consumers_of(music).create()
    write(music, *range(40))
    watcher_of(music, [], consumer="nightly-export").run_once()
    release = threading.Event()
    stuck = watcher_of(
        music,
        [],
        consumer="search-index",
        capture="change-stream",
        stream={"name": "Everything"},
        start="latest",
        lease="2s",
    )
    stuck.on_change(lambda change: release.wait(SECONDS))
    with ExitStack() as stack:
        for name in ("billing", "cache"):
            watcher = watcher_of(music, [], consumer=name, lease="2s", tables=["Singers", "Albums"])
            stack.enter_context(run_in_thread(watcher))
            wait_for_state(music, State.RUNNING, name)
        stack.enter_context(run_in_thread(stuck))
        stack.callback(release.set)
        wait_for_state(music, State.RUNNING, "search-index")
        consumers_of(music).ask("cache", Command.PAUSE)
        wait_for_state(music, State.PAUSED, "cache")
        for key in range(25):
            write_both(music, key)
        yield music


def test_four_consumers_are_readable_on_a_desktop_and_a_phone(
    four_consumers: Database, tmp_path: Path
) -> None:
    with browse(four_consumers, tmp_path / "profile", "--control") as (page, browser):
        assert browser.run("return document.querySelectorAll('tr[data-consumer]').length") == 4
        for width in (DESKTOP, PHONE):
            for scheme in ("light", "dark"):
                browser.show_as(width, scheme)
                browser.wait_for("return window.innerWidth === arguments[0]", width)
                assert browser.run("return document.documentElement.scrollWidth") <= width
                browser.take_screenshot(tmp_path / f"page-{width}-{scheme}.png")
        requests = browser.list_requests()
        # With a token the page lies under a path of its own: see watcher.overview.page.access.
        home = browser.run("return location.href")
        assert {home + name for name in ("page.css", "page.js")} <= set(requests)
        # chrome://, about: and data: are the browser's own.
        asked = [each for each in requests if each.partition(":")[0] in NETWORK]
        assert [each for each in asked if not each.startswith(page.address + "/")] == []
        assert browser.list_errors() == []

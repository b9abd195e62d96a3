"""Makes docs/pictures/: ``spanner-watcher try`` in a terminal, and the live page in a browser."""

from __future__ import annotations

import base64
import html
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from fixtures.bad_days import CASES, make_fleet, overview_of, serve_overview
from fixtures.browser import Browser, open_browser

from watcher.overview.conditions import Condition
from watcher.overview.values import Overview

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
DESKTOP, PHONE = 1280, 390
BYTES_MAX = 100_000
TRY = ("try", "--seconds", "6")
SHOWN = (
    Condition.FAILING,
    Condition.HAS_DEAD_LETTERS,
    Condition.BEHIND,
    Condition.PAUSED,
    Condition.RUNNING,
    Condition.FINISHED,
)
TERMINAL = """<!doctype html><meta charset="utf-8"><title>A terminal</title><style>
:root {{ color-scheme: light dark; }}
body {{ margin: 0; background: light-dark(#f6f8fa, #0d1117); color: light-dark(#1f2328, #e6edf3); }}
pre {{ margin: 0; padding: 20px 24px; font: 15px/1.55 "DejaVu Sans Mono", monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; }}
b {{ color: light-dark(#0550ae, #79c0ff); }}
</style><pre>{}</pre>"""


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture: what is served, how wide it is, and how much of its height is shown."""

    name: str
    serve: Callable[[], AbstractContextManager[str]]
    width: int = DESKTOP
    height_max: int = 1_000


def run_try() -> str:
    """What ``try`` prints until its changes have arrived."""
    command = [str(Path(sys.executable).with_name("spanner-watcher")), *TRY]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return output.split("changes have arrived")[0].rpartition("\n\n")[0]


@contextmanager
def show_terminal() -> Iterator[str]:
    """The address of a terminal with ``try`` in it."""
    text = html.escape(run_try()).replace("UPSERT", "<b>UPSERT</b>")
    page = TERMINAL.format(f"$ <b>spanner-watcher try</b>\n{text}")
    yield f"data:text/html;base64,{base64.b64encode(page.encode()).decode()}"


def make_day() -> Overview:
    """Consumers in some of the conditions."""
    named = {
        Condition.FAILING: "to-kafka",
        Condition.HAS_DEAD_LETTERS: "mails",
        Condition.BEHIND: "search-index",
        Condition.PAUSED: "reports",
        Condition.RUNNING: "music-copy",
        Condition.FINISHED: "first-load",
    }
    return overview_of([replace(CASES[each], consumer=named[each]) for each in SHOWN], ["Singers"])


def show_day() -> AbstractContextManager[str]:
    """The live page of that day."""
    return serve_overview(make_day(), [])


def show_fleet() -> AbstractContextManager[str]:
    """The live page of a hundred consumers and five hundred tables."""
    return serve_overview(make_fleet(100, 500), [])


SCENES = (
    Scene("try", show_terminal, 1_100),
    Scene("page", show_day, height_max=1_300),
    Scene("page-phone", show_day, PHONE, 1_400),
    Scene("page-100", show_fleet, height_max=1_300),
)


def take(browser: Browser, scene: Scene, scheme: str, folder: Path) -> Path:
    """Makes a picture of a scene."""
    file = folder / f"{scene.name}-{scheme}.webp"
    with scene.serve() as address:
        browser.show_as(scene.width, scheme)
        browser.open(address)
        if address.startswith("http"):
            browser.wait_for("return Number(document.body.dataset.polls) > 0")
        browser.control("Emulation.setScrollbarsHidden", hidden=True)
        height = browser.run("return document.body.offsetHeight")
        browser.take_screenshot(file, min(height, scene.height_max))
    return file


def main(folder: Path = FOLDER) -> None:
    """Makes all of them."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, open_browser(Path(profile)) as browser:
        for scene in SCENES:
            for scheme in ("light", "dark"):
                file = take(browser, scene, scheme, folder)
                print(f"{file.stat().st_size:>9,} {file.name}")


if __name__ == "__main__":
    main()

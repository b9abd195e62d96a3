"""The pages of docs/troubles, followed by a new user: the command fails with the message that is
the title of its page, and what the page says to do ends that."""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.listings import DOCS, ROOT, Listing, follow, read_listings

PAGES = sorted((DOCS / "troubles").glob("*.md"))
BEGIN = """export D=spanner://projects/my-project/instances/my-instance/databases/my-database
export SPANNER_EMULATOR_HOST=127.0.0.1:9010
"""
SERVE = "spanner-watcher emulator --port 9010 --database $D --schema singers.sql &\n"
WATCHABLE = SERVE + "spanner-watcher ddl apply --database $D --table Singers\n"
WITH_ROWS = WATCHABLE + "python write_singers.py $D\n"
WITHOUT_DUCKDB = """
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "duckdb" else find(name, *more)
from watcher.cli import main
main()
"""
"""The program where the library was not installed."""
WORLDS = {
    "another-instance": WITH_ROWS
    + "spanner-watcher watch --database $D --table Singers --consumer my-reader 2> other.log &\n"
    + "until spanner-watcher status --database $D --consumer my-reader --json 2> /dev/null"
    ' | grep -qi \'"state": "running"\'; do sleep 0.1; done\n',
    "callback-failed": WITH_ROWS,
    "missing-libraries": WITH_ROWS
    + "mv .bin/spanner-watcher .bin/whole\n"
    + f"echo 'exec {sys.executable} without_duckdb.py \"$@\"' > .bin/spanner-watcher\n"
    + "echo 'mv .bin/whole .bin/spanner-watcher' > .bin/pip\n"
    + "chmod +x .bin/spanner-watcher\n",
    "no-change-stream": WITH_ROWS,
    "no-credentials": WITH_ROWS + "unset SPANNER_EMULATOR_HOST\nexport HOME=$PWD\n",
    "no-database": SERVE,
    "no-permission": WITH_ROWS,
    "no-table": WITH_ROWS,
    "not-watchable": SERVE,
    "nothing-answers": "",
}
"""What a reader has done before, by page."""
FAIL = "set +e\n{ %s; } 2> trouble.log\necho exit code $?\nset -e\n"


def to_pattern(text: str) -> str:
    """The expression of a text with gaps."""
    return ".*".join(re.escape(part) for part in text.split("..."))


def read_title(page: Path) -> str:
    return page.read_text().splitlines()[0].removeprefix("# ")


def follow_page(page: Path, folder: Path) -> tuple[str, list[str]]:
    """What the failing command has printed as errors, and what each listing has printed."""
    for name in ("singers.sql", "write_singers.py"):
        shutil.copy(ROOT / "examples" / name, folder)
    (folder / "without_duckdb.py").write_text(WITHOUT_DUCKDB)
    listings = read_listings(page)
    files = [each for each in listings if each.title]
    trouble, *remedies = [each for each in listings if each.kind == "sh"]
    begin = replace(trouble, text=BEGIN + WORLDS[page.stem])
    failing = replace(trouble, text=FAIL % trouble.text.strip())
    outputs = follow([*files, begin, failing, *remedies], folder)
    return (folder / "trouble.log").read_text(), outputs[1:]


def message_of(page: Path) -> Listing:
    (message,) = [each for each in read_listings(page) if each.kind == "text"]
    return message


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_trouble_is_met_and_ended(page: Path, tmp_path: Path) -> None:
    errors, (failed, *_) = follow_page(page, tmp_path)
    expected = to_pattern(message_of(page).text.strip()).replace("9010", r"\d+")
    assert re.search(f"^{expected}$", errors, re.MULTILINE), errors
    (code,) = re.findall(r"^The exit code is (\d+)\.$", page.read_text(), re.MULTILINE)
    assert failed.splitlines()[-1] == f"exit code {code}"


def test_the_title_of_each_page_is_its_message() -> None:
    for page in PAGES:
        assert re.search(to_pattern(read_title(page)), message_of(page).text), page.stem
    assert len(PAGES) == len(WORLDS) >= 10


def test_the_first_page_about_troubles_has_them_all() -> None:
    text = (DOCS / "troubleshooting.md").read_text()
    for page in PAGES:
        assert f"[`{read_title(page)}`](troubles/{page.name})" in text

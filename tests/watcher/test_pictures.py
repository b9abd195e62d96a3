"""The pictures of the documentation are made of the program as it is, and are small."""

from __future__ import annotations

from pathlib import Path

from fixtures.browser import NEEDS_BROWSER, open_browser
from pictures.run import BYTES_MAX, FOLDER, SCENES, make_day, run_try, show_day, take

SCHEMES = ("light", "dark")


def test_the_pictures_are_those_of_the_scenes_and_are_small() -> None:
    files = {file.name: file.stat().st_size for file in FOLDER.iterdir()}
    assert set(files) == {f"{each.name}-{scheme}.webp" for each in SCENES for scheme in SCHEMES}
    assert max(files.values()) < BYTES_MAX


def test_every_picture_is_shown_by_a_page_with_its_text() -> None:
    pages = "\n".join(page.read_text() for page in FOLDER.parent.glob("*.md"))
    for file in FOLDER.iterdir():
        assert f'="pictures/{file.name}"' in pages
    assert pages.count("<img ") == pages.count('<img alt="')


def test_the_terminal_has_changes() -> None:
    assert run_try().count("UPSERT Singers") >= 3


@NEEDS_BROWSER
def test_a_picture_is_taken_of_the_live_page(tmp_path: Path) -> None:
    (scene,) = [each for each in SCENES if each.name == "page-phone"]
    with open_browser(tmp_path / "profile") as browser:
        file = take(browser, scene, "dark", tmp_path)
        with show_day() as address:
            browser.open(address)
            browser.wait_for("return Number(document.body.dataset.polls) > 0")
            text = browser.run("return document.body.textContent")
    assert file.read_bytes()[8:12] == b"WEBP"
    assert 5_000 < file.stat().st_size < BYTES_MAX
    assert all(each.consumer in text for each in make_day().consumers)

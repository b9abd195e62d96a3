"""The site of the documentation in a browser: light, dark, on a phone, for everybody, searched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from fixtures.browser import NEEDS_AXE, NEEDS_BROWSER, Browser, list_violations
from fixtures.listings import DOCS
from fixtures.site import serve_site

pytestmark = NEEDS_BROWSER
DESKTOP, PHONE = 1280, 390
OTHERS = (
    "choose.html",
    "comparison.html",
    "page.html",
    "troubles/another-instance.html",
    "troubleshooting.html",
    "tutorials/without-spark.html",
    "reference/commands.html",
)
FIND_RESULTS = """
const host = [...document.querySelectorAll("div")].find((each) => each.shadowRoot);
return [...host.shadowRoot.querySelectorAll("[role=listbox] a")].map((each) => each.href);
"""
LIST_WIDE = """
return [...document.querySelectorAll("article *")].filter((each) =>
    each.getBoundingClientRect().right > innerWidth + 1
    && !each.closest(".md-typeset__scrollwrap, pre")).map((each) => each.outerHTML.slice(0, 200));
"""
READ_SCHEME = """
const [red, green, blue] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g);
return Number(red) + Number(green) + Number(blue) > 384 ? "light" : "dark";
"""


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with serve_site(site) as served:
        yield served


def show(browser: Browser, address: str, width: int, scheme: str) -> None:
    """Opens a page, whole and with what its scripts make of it."""
    browser.show_as(width, scheme)
    browser.open(address)
    browser.wait_for("return document.readyState === 'complete'")


@NEEDS_AXE
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
class TestAxe:
    """Judged by other people's rules, on a desktop and on a phone, light and dark."""

    def test_it_finds_no_violation_on_the_first_page(
        self, browser: Browser, address: str, width: int, scheme: str
    ) -> None:
        show(browser, address, width, scheme)
        assert browser.run(READ_SCHEME) == scheme
        assert list_violations(browser) == []

    def test_it_finds_no_violation_on_other_pages(
        self, browser: Browser, address: str, width: int, scheme: str
    ) -> None:
        found = {}
        for page in OTHERS:
            show(browser, address + page, width, scheme)
            found[page] = list_violations(browser)
        assert found == {page: [] for page in OTHERS}


def test_the_scheme_of_the_system_is_followed_also_when_it_changes(
    browser: Browser, address: str
) -> None:
    for scheme in ("dark", "light", "dark"):
        show(browser, address, DESKTOP, scheme)
        assert browser.run(READ_SCHEME) == scheme


def test_no_page_is_wider_than_a_phone(browser: Browser, address: str, site: Path) -> None:
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    wide = {}
    for path in pages:
        show(browser, f"{address}{path.relative_to(site)}", PHONE, "light")
        width = browser.run("return document.documentElement.scrollWidth")
        if width > PHONE or browser.run(LIST_WIDE):
            wide[path.name] = browser.run(LIST_WIDE)
    assert wide == {}
    assert len(pages) > len(OTHERS)


def test_what_is_wider_than_a_phone_is_found(browser: Browser, address: str) -> None:
    show(browser, address, PHONE, "light")
    browser.run("document.querySelector('article h1').style.width = '500px'")
    assert browser.run(LIST_WIDE)


def search(browser: Browser, address: str, words: str) -> list[str]:
    """The paths that the site's own search finds, the best first."""
    show(browser, address, DESKTOP, "light")
    browser.click(".md-search__button")
    browser.control("Input.insertText", text=words)
    browser.wait_for(f"{FIND_RESULTS.replace('return', 'const found =')} return found.length > 0")
    return [urlsplit(each).path for each in browser.run(FIND_RESULTS)]


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("version_retention_period", "/reference/"),
        ("exit codes", "/exit-codes.html"),
        ("another instance runs as consumer", "/troubles/another-instance.html"),
    ],
)
def test_the_search_finds_a_page(browser: Browser, address: str, words: str, page: str) -> None:
    paths = search(browser, address, words)
    assert any(path.startswith(page) for path in paths), paths


def test_the_search_finds_the_page_of_each_message(browser: Browser, address: str) -> None:
    missed = {}
    for page in sorted((DOCS / "troubles").glob("*.md")):
        title = page.read_text().splitlines()[0].removeprefix("# ").replace("...", "").strip()
        paths = search(browser, address, title)
        if f"/troubles/{page.stem}.html" not in paths[:3]:
            missed[title] = paths[:3]
    assert missed == {}


def test_the_browser_reports_no_error_and_asks_nobody_else(browser: Browser, address: str) -> None:
    browser.list_requests()
    browser.list_errors()
    show(browser, address, DESKTOP, "light")
    asked = [each for each in browser.list_requests() if not each.startswith(("data:", "blob:"))]
    assert asked
    assert [each for each in asked if not each.startswith(address)] == []
    assert browser.list_errors() == []

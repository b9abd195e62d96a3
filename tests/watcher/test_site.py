"""The site of the documentation: built without a warning, complete, and alone."""

from __future__ import annotations

import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fixtures.listings import DOCS, ROOT

LOADED = {
    "audio": "src",
    "embed": "src",
    "form": "action",
    "iframe": "src",
    "img": "src",
    "link": "href",
    "object": "data",
    "script": "src",
    "source": "src",
    "video": "src",
}
"""The elements that make a browser load something, and the attribute that says what."""
REFERENCES = {"canonical", "alternate", "next", "prev"}
"""Links of a head that a browser does not load."""
LOADING_CLASSES = {"glightbox", "mermaid", "playground"}
"""The theme loads a library from elsewhere where an element has one of these."""
CSS_URL = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])((?:https?:)?//[^\"')\s]+)")


class Page(HTMLParser):
    """What a page loads from another host."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.foreign += sorted(LOADING_CLASSES.intersection((values.get("class") or "").split()))
        target = values.get(LOADED.get(tag, ""), "") or ""
        referenced = tag == "link" and set((values.get("rel") or "").split()) & REFERENCES
        if not referenced and re.match(r"(?:https?:)?//", target):
            self.foreign.append(f"<{tag}> {target}")


def list_foreign(path: Path) -> list[str]:
    """What a file of the site would load from another host."""
    text = path.read_text(errors="replace")
    if path.suffix == ".css":
        return CSS_URL.findall(text)
    page = Page()
    page.feed(text)
    return page.foreign


def test_every_page_is_in_the_navigation() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    named = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    assert named == {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}


def test_every_page_is_built_without_a_warning(site: Path) -> None:
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS).with_suffix(".html")).exists()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert len(files) > len(list(DOCS.rglob("*.md")))
    assert {str(path): found for path in files if (found := list_foreign(path))} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<link rel="stylesheet" href="https://fonts.googleapis.com/css?family=Inter">'),
        ("a.html", '<script src="//cdn.example/x.js"></script>'),
        ("a.html", '<pre class="mermaid"><code>a</code></pre>'),
        ("a.css", "@font-face{src:url(https://fonts.example/a.woff2)}"),
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert list_foreign(tmp_path / name)

"""The page of what the product relies on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reference_pages.markdown import code, format_prose, make_page, make_table
from watcher.model.assumptions.entry import Assumption
from watcher.model.assumptions.ledger import LEDGER

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("spanner_schema", "ddl", "watcher")
REFERENCE = re.compile(r"^\s*# assumes: (\S+)$", re.MULTILINE)


def list_references() -> dict[str, list[str]]:
    """By the name of an assumption, the files that rely on it."""
    found: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in dict.fromkeys(REFERENCE.findall(path.read_text())):
                found.setdefault(name, []).append(str(path.relative_to(ROOT)))
    return found


def describe_entry(entry: Assumption, files: list[str]) -> Iterator[tuple[str, str]]:
    """The rows of an entry's table."""
    page = entry.documentation
    yield "documented", f"[{entry.page}]({page})" if entry.page else page
    yield "used by", ", ".join(mode.value for mode in entry.modes)
    yield f"if wrong: {entry.consequence.value}", format_prose(entry.broken)
    yield "what to do", format_prose(entry.advice)
    yield (
        "tried by `check --probe`",
        format_prose(f"no: {entry.untried}") if entry.untried else "yes",
    )
    yield "in the code", ", ".join(map(code, files))


def make_assumptions_page() -> str:
    """docs/assumptions.md."""
    references = list_references()
    tried = sum(not entry.untried for entry in LEDGER.values())
    sections: list[str] = []
    for entry in LEDGER.values():
        rows = describe_entry(entry, references.get(entry.name, []))
        sections += [f"## {code(entry.name)}", "", format_prose(entry.sentence), ""]
        sections += make_table(("", ""), rows)
    return make_page(
        "What we rely on in Spanner",
        f"The product relies on {len(LEDGER)} behaviours of Spanner. The embedded server imitates"
        " them, so our tests cannot show whether Cloud Spanner has them. `spanner-watcher check"
        f" --probe` tries {tried} of them in your database"
        " ([how](guarantees.md#on-your-own-spanner)).",
        "",
        *sections,
    )

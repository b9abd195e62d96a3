"""The pages of object stores and catalogs, followed on the servers of this machine."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures.listings import DOCS, ROOT, follow, read_listings
from fixtures.object_stores import find_azurite, find_fake_gcs, find_moto, require
from postgres_reference.server import USER, find_programs

from emulator.ports import find_port

PORTS = ("5555", "5433")
"""Of servers of the pages; here each has a free one."""
SERVE = """spanner-watcher emulator --port 9010 --database $D --schema singers.sql &
spanner-watcher ddl apply --database $D --table Singers
python write_singers.py $D
"""


def describe_moto() -> Mapping[str, str]:
    program = require(find_moto(), "moto_server")
    return {"moto_server": f'exec {program} "$@"'}


def describe_azurite() -> Mapping[str, str]:
    require(find_azurite(), "azurite")
    return {}


def describe_fake_gcs() -> Mapping[str, str]:
    require(find_fake_gcs(), "fake-gcs-server")
    return {}


def describe_postgres() -> Mapping[str, str]:
    """Its programs, which refuse to be run by root."""
    programs = find_programs()
    if programs is None:
        pytest.skip("no PostgreSQL is installed: apt-get install postgresql")
    options = f"--reuid={USER} --regid={USER} --init-groups"
    other = f"setpriv {options} " if os.getuid() == 0 else ""
    return {each: f'exec {other}{programs / each} "$@"' for each in ("initdb", "pg_ctl")}


PAGES: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "s3": describe_moto,
    "azure": describe_azurite,
    "google": describe_fake_gcs,
    "iceberg-sql": describe_postgres,
    "iceberg-rest": dict,
}
"""What stands in for programs that the readers of a page have installed."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder, which PostgreSQL's user may write."""
    path = Path(tempfile.mkdtemp(prefix="store-page-"))
    path.chmod(0o777)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def test_each_page_is_followed_here() -> None:
    assert {page.stem for page in (DOCS / "stores").glob("*.md")} == {"index", *PAGES}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_a_store_or_catalog_is_followed(name: str, folder: Path) -> None:
    for each in ("singers.sql", "write_singers.py"):
        shutil.copy(ROOT / "examples" / each, folder)
    (folder / "tests").symlink_to(ROOT / "tests")
    page = DOCS / "stores" / f"{name}.md"
    ports = {port: str(find_port()) for port in PORTS}
    steps = []
    for listing in read_listings(page):
        text = re.sub("|".join(PORTS), lambda match: ports[match[0]], listing.text)
        steps.append(replace(listing, text=text))
    first, *others = steps
    printed = "".join(follow([first, replace(first, text=SERVE), *others], folder, PAGES[name]()))
    assert "equal  Singers: 3 rows in Spanner, 3 in the copy" in printed
    assert "3 singers" in printed
    named = re.findall(r"[Ee]xit codes (\d) and (\d)", page.read_text())
    assert [tuple(re.findall(r"^exit code (\d+)$", printed, re.MULTILINE))] == named

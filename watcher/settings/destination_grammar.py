"""What ``to`` and ``--to`` may name, in every command and file: one grammar of destinations.

``-``, ``file:PATH``, ``SCHEME://PLACE/TOPIC`` of a queue, the address of a database, and
``FORMAT:FOLDER`` or ``FORMAT:CATALOG.NAMESPACE`` of copies. What has no scheme is a path if it has
a ``/`` or a ``.``; a bare word is none, because it may be a scheme whose rest was forgotten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from spanner_schema.model.suggestions import suggest_name
from watcher.model.errors import ConfigurationError
from watcher.model.outputs import SINKS
from watcher.replica.formats import FORMATS, SPELLINGS, find_folder, is_in_catalog, split_copies
from watcher.replica.stores.object_stores import SCHEMES
from watcher.settings.destinations import (
    DESTINATIONS,
    EXAMPLE_TABLE,
    Destination,
    FilesDestination,
)
from watcher.settings.secret_values import hide_credentials

STANDARD_OUTPUT = "-"
FILE = "file"
SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+-]*):(.*)\Z", re.DOTALL)
OBJECT_STORES = (*SCHEMES, "hdfs", "s3n")
NOT_IN_ADDRESSES = "?#%"
"""Their clients take what is behind them for something else, each in its own way."""


@dataclass(frozen=True, slots=True)
class StandardOutput:
    """``-``."""


@dataclass(frozen=True, slots=True)
class FileDestination:
    """A file of lines."""

    path: Path


@dataclass(frozen=True, slots=True)
class CopiesDestination:
    """The place of copies: a folder, also in an object store, by its address; or a namespace of a
    catalog."""

    format: str
    place: str

    @property
    def folder(self) -> str:
        """The folder, which of a namespace its catalog says. Raises ConfigurationError."""
        return find_folder(self.format, self.place)

    @property
    def in_catalog(self) -> bool:
        """Whether it is a namespace."""
        return is_in_catalog(self.format, self.place)


ChangesDestination = StandardOutput | FileDestination | Destination
AnyDestination = ChangesDestination | CopiesDestination


def parse_changes_destination(text: str) -> ChangesDestination:
    """Where ``watch`` writes changes. Raises ConfigurationError that says how to write it."""
    found = parse_any(text)
    if isinstance(found, CopiesDestination):
        raise refuse(
            text,
            f"names copies, and this is for changes: use 'spanner-watcher replicate --to {text}'"
            f" for copies, or {as_file(text)} for a file of this name",
        )
    return found


def parse_copies_destination(text: str) -> CopiesDestination:
    """Where ``replicate`` keeps copies, and ``verify`` finds them. Raises ConfigurationError."""
    if SCHEME.match(text) is None and text not in (STANDARD_OUTPUT, *DESTINATIONS, *FORMATS):
        names = " or ".join(f"{each}:{hide_credentials(text)}" for each in FORMATS)
        raise refuse(text, f"does not say the format of the copies: use {names}")
    found = parse_any(text)
    if isinstance(found, CopiesDestination):
        return found
    if isinstance(found, FileDestination):
        raise refuse(text, f"is a file, which has no copies: use {' or '.join(SPELLINGS)}")
    what = "the standard output" if isinstance(found, StandardOutput) else found.service
    raise refuse(
        text,
        f"is {what}, which has no copies: use {' or '.join(SPELLINGS)}; changes are written there"
        f" by 'spanner-watcher watch --to {hide_credentials(text)}'",
    )


def parse_any(text: str) -> AnyDestination:
    """What a text names. Raises ConfigurationError."""
    if text == STANDARD_OUTPUT:
        return StandardOutput()
    match = SCHEME.match(text)
    if match is None:
        return parse_path(text)
    scheme, rest = match.groups()
    if scheme == FILE:
        return parse_file(text, rest)
    if scheme in DESTINATIONS:
        return parse_queue(text, DESTINATIONS[scheme], rest)
    if scheme in FORMATS:
        return parse_copies(text)
    raise refuse_scheme(text, scheme)


def parse_path(text: str) -> FileDestination:
    """A text without a scheme. Raises ConfigurationError for a bare word."""
    if "\0" in text:
        raise refuse(text.replace("\0", "\\0"), "has a NUL character: name a file without one")
    if "/" in text or "." in text:
        return FileDestination(Path(text))
    if text in DESTINATIONS:
        raise refuse(text, f"is not whole: write {SINKS[text].spelling}, or {as_file(text)}")
    if text in FORMATS:
        raise refuse(text, f"is not whole: write {text}:FOLDER, or {as_file(text)}")
    raise refuse(
        text,
        f"is neither a path nor a scheme: write {as_file(text)} for a file of this name; other"
        f" destinations are {', '.join(list_spellings())}",
    )


def parse_file(text: str, rest: str) -> FileDestination:
    """``file:PATH``, also as a URL of this machine. Raises ConfigurationError."""
    path = rest.removeprefix("//localhost") if rest.startswith("//localhost/") else rest
    if path.startswith("///"):
        path = path[2:]
    if not path or path.startswith("//"):
        raise refuse(
            text, "does not name a file of this machine: write file:PATH, such as file:a.jsonl"
        )
    return FileDestination(Path(path))


def parse_queue(text: str, kind: type[Destination], rest: str) -> Destination:
    """The address of a queue or a database. Raises ConfigurationError."""
    queue = kind.read(rest)
    if queue is None:
        spelling = SINKS[kind.scheme].spelling
        raise refuse(
            text,
            f"is invalid: write {spelling}"
            if rest.startswith("//")
            else f"is not whole: write {spelling}, or {as_file(text)} for a file of this name",
        )
    if isinstance(queue, FilesDestination):
        check_folder(text, queue.scheme, queue.folder)
    queue.name_topic(EXAMPLE_TABLE)
    return queue


def parse_copies(text: str) -> CopiesDestination:
    """``FORMAT:FOLDER``. Raises ConfigurationError."""
    format_, folder = split_copies(text)
    assert format_ is not None, "the caller has looked"
    if not folder.strip("/"):
        raise refuse(text, f"does not name a folder: write {format_}:FOLDER")
    if not is_in_catalog(format_, folder):
        check_folder(text, format_, folder)
    return CopiesDestination(format_, folder)


def check_folder(text: str, format_: str, folder: str) -> None:
    """A folder behind a scheme. Raises ConfigurationError for what is nearly one."""
    if folder.startswith("//") and not folder.startswith("///"):
        raise refuse(
            text,
            f"has two slashes: write {format_}:{folder[1:]} for a folder of this machine, or"
            f" {format_}:gs:{folder} for one of an object store",
        )
    nested = SCHEME.match(folder)
    if nested is not None and nested[1] in (*DESTINATIONS, *FORMATS):
        raise refuse(text, f"names two destinations: write {format_}:FOLDER, or {folder} alone")
    if nested is not None:
        check_address(text, format_, *nested.groups())


def check_address(text: str, format_: str, scheme: str, rest: str) -> None:
    """The folder of copies in an object store. Raises ConfigurationError for what is nearly one."""
    store = scheme.lower()
    if store in ("http", "https"):
        raise refuse(
            text,
            f"is a web address: write {format_}:s3://BUCKET/PREFIX, and the server's address in the"
            " variable AWS_ENDPOINT_URL",
        )
    if store not in OBJECT_STORES:
        return
    if scheme != store or not rest.startswith("//") or not rest[2:].split("/", 1)[0]:
        raise refuse(text, f"does not name a bucket: write {format_}:{store}://BUCKET/PREFIX")
    if set(NOT_IN_ADDRESSES) & set(rest):
        raise refuse(
            text,
            f"has one of {' '.join(NOT_IN_ADDRESSES)} in its address: write"
            f" {format_}:{store}://BUCKET/PREFIX; settings of the store are variables, such as"
            " AWS_ENDPOINT_URL",
        )


def refuse_scheme(text: str, scheme: str) -> ConfigurationError:
    """The error for a scheme that is not known: what can be meant."""
    if scheme.lower() in OBJECT_STORES:
        names = " or ".join(f"{each}:{hide_credentials(text)}" for each in FORMATS)
        return refuse(text, f"is an object store, which takes copies: use 'replicate' with {names}")
    known = (*DESTINATIONS, *FORMATS, FILE)
    hint = suggest_name(scheme, known, f"write {as_file(text)} for a file of this name, or one of")
    return refuse(text, f"has the unknown scheme '{scheme}'; {hint}")


def refuse(text: str, problem: str) -> ConfigurationError:
    """The error for a destination; no password is shown."""
    return ConfigurationError(f"'{hide_credentials(text)}' {problem}")


def as_file(text: str) -> str:
    """How a file of this name is written."""
    return f"./{hide_credentials(text)}"


def list_spellings() -> list[str]:
    """How every destination that is no file is written."""
    return [STANDARD_OUTPUT, *(entry.spelling for entry in SINKS.values()), *SPELLINGS]

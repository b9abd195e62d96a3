"""Errors of Google's client and of the operating system, with words and exit codes of ours."""

from __future__ import annotations

import os

from google.api_core.exceptions import (
    DeadlineExceeded,
    Forbidden,
    GoogleAPICallError,
    NotFound,
    ResourceExhausted,
    RetryError,
    ServiceUnavailable,
    Unauthenticated,
)

from watcher.model.errors import (
    AccessDeniedError,
    DatabaseNotFoundError,
    SchemaChangedError,
    UnavailableError,
    WatcherError,
)
from watcher.process.extras import OF_COMMANDS, HiddenPackageError, require_own_package
from watcher.process.terminal.commands import explain_system_error
from watcher.spanner.address import EMULATOR_HOST
from watcher.spanner.failures import FailureKind, classify_error, is_place_gone, suggest_fix


def explain_error(error: Exception) -> WatcherError | None:
    """The error as one of ours, or None for a fault of the program."""
    if isinstance(error, GoogleAPICallError | RetryError):
        return explain_answer(error)
    if isinstance(error, ImportError):
        return find_hiding_file(error)
    return explain_system_error(error)


def find_hiding_file(error: ImportError) -> HiddenPackageError | None:
    """Who hides the package of this distribution that could not be imported."""
    package = (error.name or "").partition(".")[0]
    try:
        if package in OF_COMMANDS:
            require_own_package(package)
    except HiddenPackageError as hidden:
        return hidden
    return None


def explain_answer(error: GoogleAPICallError | RetryError) -> WatcherError:
    """What Spanner answered, with what to do."""
    hint = suggest_fix(error)
    text = f"Spanner answered: {error.message or type(error).__name__}"
    message = f"{text}; {hint}" if hint else text
    if isinstance(error, Forbidden | Unauthenticated):
        return AccessDeniedError(message)
    if is_place_gone(error):
        return DatabaseNotFoundError(message)
    if classify_error(error) is FailureKind.SESSION:
        return UnavailableError(f"the session was lost, run the command again: {message}")
    if isinstance(error, ResourceExhausted):
        return UnavailableError(f"Spanner has no room for this call now, try later: {message}")
    if classify_error(error) is FailureKind.SCHEMA:
        return SchemaChangedError(message)
    if isinstance(error, NotFound):
        return DatabaseNotFoundError(message)
    if isinstance(error, ServiceUnavailable | DeadlineExceeded | RetryError):
        where = os.environ.get(EMULATOR_HOST)
        server = f"{EMULATOR_HOST}={where}" if where else "Cloud Spanner"
        return UnavailableError(f"{server} does not answer any more: {message}")
    return WatcherError(message)

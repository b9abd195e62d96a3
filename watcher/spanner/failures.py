"""Spanner's errors, classified: retry, read the schema again, or stop."""

from __future__ import annotations

import re
from enum import StrEnum

from google.api_core.exceptions import (
    Aborted,
    BadGateway,
    Cancelled,
    DeadlineExceeded,
    Forbidden,
    GoogleAPICallError,
    InternalServerError,
    InvalidArgument,
    NotFound,
    ResourceExhausted,
    RetryError,
    ServiceUnavailable,
    Unauthenticated,
    Unknown,
)

from watcher.model.errors import (
    CopyConflictError,
    FileUnavailableError,
    IndexMissingError,
    LeaseExpiredError,
    ResumptionError,
    SchemaChangedError,
    SinkUnavailableError,
    StoreUnavailableError,
    UnavailableError,
    VersionExpiredError,
)

OUTAGE_SECONDS_MAX = 5.0
"""How long the client retries one call before it is an error."""

CALL_ERRORS = (GoogleAPICallError, RetryError)
"""What a call of the client raises, if it is not wrong in itself."""
TRANSIENT = (
    Aborted,
    BadGateway,
    Cancelled,
    CopyConflictError,
    DeadlineExceeded,
    FileUnavailableError,
    InternalServerError,
    LeaseExpiredError,
    ResourceExhausted,
    ResumptionError,
    RetryError,
    ServiceUnavailable,
    SinkUnavailableError,
    StoreUnavailableError,
    UnavailableError,
    Unknown,
    VersionExpiredError,
    ConnectionError,
)

# Spanner has no codes of their own for these; its messages have been the same for years.
# assumes: missing-objects-named
SESSION_GONE = re.compile(r"(session|database) not found", re.IGNORECASE)
"""How messages begin where a session is gone. Of one whose database was dropped Spanner says that
the database is not found, also when there is another with its name by then."""
TRANSACTION_GONE = re.compile(r"transaction not found", re.IGNORECASE)
INDEX_GONE = re.compile(r"secondary index|index not found|null.filtered index", re.IGNORECASE)
ROLE_REFUSED = re.compile(r"Role (?:not found: )?\w+")
"""How Spanner refuses what the role of a session may not do, or a role that is not there."""
# A table that is missing may have any name: these two are the beginnings of a message.
PLACE_GONE = re.compile(r"(database|instance|project) not found", re.IGNORECASE)
SCHEMA_GONE = re.compile(
    r"unrecognized name|(table|column) not found|not found: (table|column)|column .* not found"
    r"|no such (table|column)|(table|relation|column) .* does not exist|schema",
    re.IGNORECASE,
)


class FailureKind(StrEnum):
    """What to do about an error."""

    SESSION = "session"
    """The session is gone and the client keeps it: connect again, which fails for good where the
    database is gone, too."""
    RETRY = "retry"
    """It may go away: retry after a pause, without limit."""
    SCHEMA = "schema"
    """A table or column is not what it was: read the schema again."""
    INDEX = "index"
    """The index that polling needs is gone."""
    PERMANENT = "permanent"
    """Somebody has to fix something."""


MAY_GO_AWAY = (FailureKind.RETRY, FailureKind.SESSION)
"""What the next try, on a new connection where it needs one, may not meet."""


def classify_error(error: BaseException) -> FailureKind:
    """What to do about an error."""
    if isinstance(error, TRANSIENT):
        return FailureKind.RETRY
    if isinstance(error, SchemaChangedError):
        return FailureKind.SCHEMA
    if isinstance(error, IndexMissingError):
        return FailureKind.INDEX
    if isinstance(error, InvalidArgument | NotFound):
        return classify_refusal(error)
    return FailureKind.PERMANENT


REFUSALS = (InvalidArgument, NotFound, SchemaChangedError, IndexMissingError)
"""The errors among which ``is_schema_refusal`` finds its own."""


def is_schema_refusal(error: BaseException) -> bool:
    """Whether a table, a column or an index is not as a statement expects it. Spanner checks a read
    against the schema at its read timestamp: it may refuse it at one and serve it at another."""
    return classify_error(error) in (FailureKind.SCHEMA, FailureKind.INDEX)


def classify_refusal(error: GoogleAPICallError) -> FailureKind:
    """What to do about a statement that Spanner refuses although it was once correct."""
    message = str(error.message)
    if SESSION_GONE.match(message):
        return FailureKind.SESSION
    if PLACE_GONE.match(message):
        return FailureKind.PERMANENT
    if TRANSACTION_GONE.search(message):
        return FailureKind.RETRY
    if INDEX_GONE.search(message):
        return FailureKind.INDEX
    if SCHEMA_GONE.search(message):
        return FailureKind.SCHEMA
    return FailureKind.PERMANENT


def is_place_gone(error: BaseException) -> bool:
    """Whether Spanner says that the database, its instance or its project does not exist."""
    return isinstance(error, NotFound) and PLACE_GONE.match(str(error.message)) is not None


def suggest_fix(error: BaseException) -> str:
    """What somebody can do about an error, as the end of a sentence; may be empty."""
    if isinstance(error, Forbidden | Unauthenticated):
        if ROLE_REFUSED.match(str(error.message)):
            return "'spanner-watcher ddl grants' shows, and grants, what a role needs"
        return "grant roles/spanner.databaseReader (and databaseUser for positions and clearing)"
    kind = classify_error(error)
    if kind is FailureKind.INDEX:
        return (
            "create the index again with 'spanner-watcher ddl apply', or set on_missing_index ="
            " 'scan' to read the table without it"
        )
    if kind is FailureKind.SCHEMA:
        return (
            "a table or a column is not what it was: compare the tables and columns that are"
            " configured with the schema, and restart"
        )
    if is_place_gone(error):
        return "check the name of the database"
    return ""

"""The exceptions of watcher.

    WatcherError
    ├── ConfigurationError     an option, flag or file is wrong; nothing was read or changed
    │   ├── AddressError           the text does not name a database
    │   ├── ConsumerNotFoundError  no consumer of this name is registered
    │   └── ConsumerMovedError     the consumer has another name now, or another database
    ├── UnavailableError       no server answers at the address
    ├── DatabaseNotFoundError  the instance or the database does not exist
    ├── AccessDeniedError      the caller may not read or write there
    ├── TableNotFoundError     the table does not exist
    ├── NotWatchableError      the table lacks what watching needs; names the command that adds it
    │   ├── NotOursError           clearing would erase what an application wrote
    │   └── StreamNotFoundError    the change stream does not exist
    ├── UnsafeModeError        a probe of the database found wrong what a mode relies on
    ├── CheckpointError        the offset or position belongs to another query
    ├── PositionConflictError  another instance moved a consumer's position
    ├── VersionExpiredError    the read timestamp is older than version_retention_period
    ├── ClearedError           requested rows may have been cleared from the index
    ├── LeaseHeldError         another instance runs under the same consumer name
    ├── LeaseExpiredError      this instance has not renewed its lease in time
    ├── LeaseLostError         another instance has taken the consumer name over
    ├── SchemaChangedError     the table has changed since the query was prepared
    ├── IndexMissingError      the index that polling needs is gone
    ├── StreamExpiredError     a change stream no longer keeps records as old as a position
    ├── DeliveryError          a callback or a queue refused a change that was not to be skipped
    ├── SinkUnavailableError   a queue does not answer; the window is delivered again
    ├── FileWriteError         a file cannot be written
    │   └── FileUnavailableError   its disk is full, or it was moved; the window is delivered again
    ├── FileInUseError         another process is writing to the file
    ├── EnvelopeError          a change lacks what its envelope needs
    ├── ReplicaError           a replica has no such cut, or its files are not what it says
    ├── CopyConflictError      another writer has changed a copy since it was read
    ├── OutputWriteError       the standard output cannot be written
    └── OutputClosedError      the reader of the standard output has gone

``str(error)`` says what is wrong, where, and what to do. ``exit_code`` is what commands exit with.
"""

from __future__ import annotations


class WatcherError(Exception):
    """Base of every error that watcher raises deliberately."""

    exit_code = 1


class LossyNumericError(WatcherError):
    """A numeric of the PostgreSQL dialect does not fit into DECIMAL(38, 9)."""


class ConfigurationError(WatcherError):
    """An option, a flag or a configuration file is wrong; nothing was read or changed."""

    exit_code = 2


class AddressError(ConfigurationError):
    """The text does not name a Spanner database."""


class UnavailableError(WatcherError):
    """No server answers at the address."""

    exit_code = 3


class NotStartedError(WatcherError):
    """A run was asked to end before it had started; ``reason``: why it had not started by then."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(f"ended before it had started: {reason}")
        self.reason = reason


class ResumptionError(WatcherError):
    """A server refused to continue a stream where it broke; what it was to read is read again."""

    exit_code = 3


class DatabaseNotFoundError(WatcherError):
    """The instance or the database does not exist."""

    exit_code = 4


class AccessDeniedError(WatcherError):
    """The caller may not read or write there."""

    exit_code = 3


class TableNotFoundError(WatcherError):
    """The table does not exist."""

    exit_code = 4


class ConsumerNotFoundError(ConfigurationError):
    """No consumer of this name is registered, or it has no position in a table."""

    exit_code = 4


class ConsumerMovedError(ConfigurationError):
    """The consumer was moved to another name or database, or is on its way."""

    exit_code = 6


class NotWatchableError(WatcherError):
    """The table lacks what watching needs."""

    exit_code = 5


class UnsafeModeError(WatcherError):
    """The last probe of the database has found wrong what a mode relies on."""

    exit_code = 5


class NotOursError(NotWatchableError):
    """Clearing would erase what an application wrote, and nobody let it."""


class IndexDroppedError(NotWatchableError):
    """A table that was polled has lost its index."""


class DivisionChangedError(NotWatchableError):
    """The tables of a shared consumer are divided in another way than when it began."""


class StreamNotFoundError(NotWatchableError):
    """The change stream does not exist."""

    exit_code = 4


class CheckpointError(WatcherError):
    """The offset or position belongs to another database, table or release."""

    exit_code = 6


class PositionConflictError(WatcherError):
    """Another instance moved a consumer's position."""

    exit_code = 6


class VersionExpiredError(WatcherError):
    """The read timestamp is older than the database's version_retention_period."""

    exit_code = 7


class ClearedError(WatcherError):
    """Requested rows may have been cleared from the index before the read timestamp."""

    exit_code = 7


class LeaseHeldError(WatcherError):
    """Another instance runs under the same consumer name."""

    exit_code = 6


class LeaseExpiredError(WatcherError):
    """This instance has not renewed its lease in time, so another one may have taken the name."""

    exit_code = 3


class LeaseLostError(PositionConflictError):
    """Another instance has taken the consumer name over."""


class SchemaChangedError(WatcherError):
    """The table has changed since the query was prepared; read the schema again."""


class IndexMissingError(WatcherError):
    """The index that polling needs is gone."""

    exit_code = 5


class StreamExpiredError(WatcherError):
    """A change stream no longer keeps records as old as a position: the reader has lost them."""

    exit_code = 7


class DeliveryError(WatcherError):
    """A callback or a queue refused a change at every try, and it was not to be skipped."""

    exit_code = 9


class SinkUnavailableError(WatcherError):
    """A queue does not answer, or lost what it had not acknowledged; the window is delivered
    again."""

    exit_code = 3


class FileWriteError(WatcherError):
    """A file of changes, dead letters or positions cannot be written."""

    exit_code = 3


class FileUnavailableError(FileWriteError):
    """The disk of a file is full, or the file was moved while it was written to. The window is
    delivered again."""


class FileInUseError(WatcherError):
    """Another process is writing to the file."""

    exit_code = 6


class OutputWriteError(WatcherError):
    """The standard output cannot be written, as on a full disk. No position is saved for what was
    not written."""

    exit_code = 3


class EnvelopeError(WatcherError):
    """A change lacks what its envelope needs; nothing of it was delivered."""


class OutputClosedError(WatcherError):
    """The reader of the standard output has gone, as ``| head`` does. Not reported: the command
    ends with the code that a shell gives to a process that SIGPIPE ended."""

    exit_code = 141


class ReplicaError(WatcherError):
    """A replica has no such cut or table, or its files are not what the manifest says."""

    exit_code = 6


class StoreUnavailableError(ReplicaError):
    """The disk of a replica is full, or its object store does not answer. The window is delivered
    again."""

    exit_code = 3


class CopyConflictError(ReplicaError):
    """Another writer has changed a copy since it was read. The window is tried again: an instance
    that was taken over then finds that its lease is lost."""


def first_line(error: BaseException) -> str:
    """What an error says, up to its first end of a line; its type where it says nothing."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

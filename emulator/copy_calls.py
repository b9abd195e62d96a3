"""The calls of this server, which Spanner does not have, that copy databases while it runs."""

from __future__ import annotations

COPY = "/spanner_watcher.emulator.Databases/Copy"
"""Makes a database that is as another one is now, in the same instance. Takes and returns a
google.protobuf.Struct with ``database``, the name of that one, and ``id``, that of the copy."""

SNAPSHOT = "/spanner_watcher.emulator.Databases/Snapshot"
"""Writes all databases, as they are at one moment, as a data directory. Takes and returns a
google.protobuf.Struct with ``directory``, an absolute path on the server's machine."""

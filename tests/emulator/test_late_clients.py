"""A process of the server imports messages of Google's packages, and their clients when asked."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import emulator.__main__
import emulator.server

left = "google.cloud.spanner_v1.client"
assert left not in sys.modules, "serving needs no client"
assert "google.cloud.spanner_v1.types.spanner" in sys.modules
from google.cloud import spanner, spanner_v1
from google.cloud.spanner_admin_database_v1 import DatabaseAdminClient, types
assert left in sys.modules
assert spanner.Client is spanner_v1.Client
assert spanner_v1.types.ExecuteSqlRequest is spanner_v1.ExecuteSqlRequest
assert types.Database.__module__.startswith(types.__name__)
assert DatabaseAdminClient
try:
    spanner_v1.nothing
except AttributeError as error:
    print(error)
"""


def test_clients_are_there_when_somebody_asks_for_them() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=300
    )
    assert ran.stdout == "module 'google.cloud.spanner_v1' has no attribute 'nothing'\n"

"""``python -m emulator``: the server as a process; its first line says where it listens."""

from __future__ import annotations

import gc
import sys

from emulator.late_clients import leave_clients

leave_clients()
gc.disable()  # until the server is ready: nothing that is imported is garbage

from emulator.command import main  # noqa: E402 (it imports the packages that the call is about)

if __name__ == "__main__":
    sys.exit(main())

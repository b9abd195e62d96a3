"""``python -m conformance FOLDER``: one run as ``FOLDER/settings.json`` says, in this process."""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import NoReturn

from conformance.run import run
from conformance.settings import Settings
from watcher.model.errors import ConfigurationError


def main(folder: Path) -> int:
    """The exit code: 0 if there is a report."""
    signal.signal(signal.SIGTERM, interrupt)
    settings = Settings.from_json(json.loads((folder / "settings.json").read_text()))
    try:
        run(settings, folder)
    except ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    except Exception:  # noqa: BLE001 (the process that started this one tells it)
        traceback.print_exc()
        return 1
    return 0


def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    """Ends the run with everything that it has started."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    try:
        code = main(Path(sys.argv[1]))
    except SystemExit as stop:
        code = int(str(stop))
    sys.stderr.flush()
    os._exit(code)  # a writer may hang in the client's retries against a server that is gone

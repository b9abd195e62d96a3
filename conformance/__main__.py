"""``python -m conformance FOLDER``: one run as ``FOLDER/settings.json`` says, in this process."""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from conformance.run import run
from conformance.settings import Settings
from watcher.errors import ConfigurationError


def main(folder: Path) -> int:
    """The exit code: 0 if there is a report."""
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


if __name__ == "__main__":
    code = main(Path(sys.argv[1]))
    sys.stderr.flush()
    os._exit(code)  # a writer may hang in the client's retries against a server that is gone

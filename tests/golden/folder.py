"""Where the case files are. They are data of other projects, and no part of this repository."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "CONFORMANCE_FILES"
FOLDER = Path(os.environ.get(VARIABLE) or Path(__file__).parents[3] / "shared" / "conformance")
"""The folder, of which there may be none: beside the repository, or where the variable says."""

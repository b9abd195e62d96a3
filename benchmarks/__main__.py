"""``python -m benchmarks`` is ``spanner-watcher bench``."""

from __future__ import annotations

from benchmarks.cli import main

if __name__ == "__main__":
    main()

"""``python -m reference_pages``."""

from __future__ import annotations

from reference_pages import FOLDER, write_pages

changed = write_pages()
print(f"{FOLDER}: {', '.join(changed) or 'nothing has changed'}")

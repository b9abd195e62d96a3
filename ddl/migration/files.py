"""A plan as numbered SQL files, up and down, for tools that run migrations from files."""

from __future__ import annotations

import re
from pathlib import Path

from ddl.migration.plan import Plan
from spanner_schema.model.errors import PlanError

NUMBER = re.compile(r"(\d{4})_.*\.sql\Z")


def write_files(plan: Plan, folder: Path, label: str = "make_watchable") -> tuple[Path, Path]:
    """Writes ``NNNN_label.up.sql`` and ``NNNN_label.down.sql``, with the next free number.

    Raises PlanError when the folder cannot be written; nothing is overwritten.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = [int(m.group(1)) for path in folder.iterdir() if (m := NUMBER.match(path.name))]
        stem = f"{max(taken, default=0) + 1:04d}_{label}"
        up, down = folder / f"{stem}.up.sql", folder / f"{stem}.down.sql"
        with up.open("x") as file:
            for statement in plan.statements:
                file.write(f"-- {statement.reason}\n-- {statement.cost}\n{statement.sql};\n\n")
        with down.open("x") as file:
            file.writelines(f"{sql};\n" for sql in plan.down)
    except OSError as error:
        raise PlanError(f"cannot write to {folder}: {error.strerror}") from error
    return up, down

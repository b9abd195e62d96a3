"""``spanner-watcher ddl``: make the tables of a database watchable, and keep them healthy."""

from __future__ import annotations

from watcher.process.terminal.commands import CommandApp

app = CommandApp(
    {
        "status": "watcher.cli.ddl.status:command",
        "plan": "watcher.cli.ddl.migrate:plan",
        "apply": "watcher.cli.ddl.migrate:apply",
        "rollback": "watcher.cli.ddl.rollback:command",
        "lint": "watcher.cli.ddl.lint:command",
        "advise": "watcher.cli.ddl.advise:command",
        "changelog": "watcher.cli.ddl.changelog:command",
        "grants": "watcher.cli.ddl.grants:command",
        "change-stream": "watcher.cli.ddl.change_stream:app",
    },
)


@app.callback()
def describe() -> None:
    """Make the tables of a database watchable."""

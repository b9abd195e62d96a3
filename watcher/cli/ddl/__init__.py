"""``spanner-watcher ddl``: make the tables of a database watchable, and keep them healthy."""

from __future__ import annotations

from watcher.cli.ddl import advise, change_stream, changelog, lint, migrate, rollback, status
from watcher.terminal.commands import CommandApp

app = CommandApp(help="Make the tables of a database watchable.")
app.command("status")(status.command)
app.command("plan")(migrate.plan)
app.command("apply")(migrate.apply)
app.command("rollback")(rollback.command)
app.command("lint")(lint.command)
app.command("advise")(advise.command)
app.command("changelog")(changelog.command)
app.add_typer(change_stream.app, name="change-stream")

"""``spanner-watcher ctl``: commands for running consumers, and for what is kept of them."""

from __future__ import annotations

from watcher.process.terminal.commands import CommandApp

app = CommandApp(
    {
        "pause": "watcher.cli.ctl.commands:pause",
        "resume": "watcher.cli.ctl.commands:resume",
        "drain": "watcher.cli.ctl.commands:drain",
        "stop": "watcher.cli.ctl.commands:stop",
        "replay": "watcher.cli.ctl.commands:replay",
        "forget": "watcher.cli.ctl.commands:forget",
        "merge": "watcher.cli.ctl.commands:merge",
        "audit": "watcher.cli.ctl.audit:command",
        "backup": "watcher.cli.ctl.backups:backup",
        "restore": "watcher.cli.ctl.backups:restore",
        "move": "watcher.cli.ctl.move:command",
    },
)


@app.callback()
def describe() -> None:
    """Pause, resume, drain or stop a running consumer; back up, restore or move one.

    Works from any machine. The consumer obeys when it renews its lease, within seconds."""

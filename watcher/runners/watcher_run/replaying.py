"""Delivers the dead letters of a run again, as an operator asks."""

from __future__ import annotations

import logging

from watcher.consumers.states import Command
from watcher.model.errors import ConfigurationError, FileInUseError
from watcher.model.log_events.delivery import DEAD_LETTERS_NOT_REPLAYED, DEAD_LETTERS_REPLAYED
from watcher.runners.watcher_run.lease_keeper import LeaseKeeper
from watcher.runners.watcher_run.settings import RunContact, RunSettings

LOG = logging.getLogger("watcher")


def obey_replay(settings: RunSettings, lease: LeaseKeeper, contact: RunContact) -> None:
    """Between windows, where the sink has nothing else in hand; then the command is taken back.
    Raises what the sink raises: the command stays."""
    try:
        replay = settings.replay(contact)
    except (ConfigurationError, FileInUseError) as error:
        DEAD_LETTERS_NOT_REPLAYED.log(LOG, consumer=lease.consumer, error=error)
        lease.store_error(error)
    else:
        settings.totals.note_dead_letters(replay.left)
        DEAD_LETTERS_REPLAYED.log(
            LOG, consumer=lease.consumer, letters=replay.read, left=replay.left
        )
    settings.lifecycle.done = Command.REPLAY
    lease.keep()

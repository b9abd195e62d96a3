"""Up to which timestamp versions were removed from a file: no read may go below it any more."""

from __future__ import annotations

import apsw

from emulator.storage.sqlite import fetch_integer

CREATE_HORIZON = 'CREATE TABLE IF NOT EXISTS "$horizon" (micros INTEGER NOT NULL)'


def load_horizon(connection: apsw.Connection) -> int:
    """The earliest readable timestamp, in Unix microseconds; 0 while nothing was removed."""
    return fetch_integer(connection, 'SELECT max(micros) FROM "$horizon"')


def save_horizon(connection: apsw.Connection, micros: int) -> None:
    """Notes what is removed, in the transaction that removes it."""
    connection.execute('DELETE FROM "$horizon"')
    connection.execute('INSERT INTO "$horizon" VALUES (?)', (micros,))

"""SQLite below the engine: one file a database, current rows beside their history."""

"""What an operator sees of a database: consumers, deadlines, backfills and indexes. Only reads."""

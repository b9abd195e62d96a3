"""A real PostgreSQL as the judge of what Spanner's dialect shares with it."""

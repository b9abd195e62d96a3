"""Everything that reads Spanner: client, sessions, queries as streams, results as columns."""

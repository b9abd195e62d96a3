"""Whether a database does what we rely on that Spanner does: its tables, and what is tried."""

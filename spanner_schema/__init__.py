"""A Spanner schema as values: its tables, its statements in both dialects, and what is watched."""

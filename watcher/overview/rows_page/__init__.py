"""The page of an embedded Spanner: its databases, their tables and rows, to look at."""

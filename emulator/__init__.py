"""An embedded Spanner: the real gRPC API on top of SQLite."""

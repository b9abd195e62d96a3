"""What of a schema is ours: tracking columns, shards, and what may be written over."""

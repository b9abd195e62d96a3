"""Primary keys: their order, ranges, sets and hashes."""

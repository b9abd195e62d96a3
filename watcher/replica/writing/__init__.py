"""What the formats that this process writes have in common: files, keys, rows, merges."""

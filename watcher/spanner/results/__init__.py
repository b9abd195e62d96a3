"""Results as they come over the wire, and as Arrow columns."""

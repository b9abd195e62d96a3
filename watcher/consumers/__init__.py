"""Who watches: leases and states, positions, and clearing behind the slowest."""

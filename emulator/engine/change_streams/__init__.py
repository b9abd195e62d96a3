"""Change streams: what is recorded in a commit, in which partition, and how it is read."""

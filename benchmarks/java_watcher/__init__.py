"""The published Java Spanner Change Watcher, driven by a class of ours."""

"""One run of a watcher, from its lease to its release."""

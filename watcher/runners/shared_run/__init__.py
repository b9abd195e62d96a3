"""One instance of a shared consumer."""

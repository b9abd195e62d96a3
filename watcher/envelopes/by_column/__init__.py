"""The changes of a batch by column, with their cells as JSON texts."""

"""Results as pages: figures, charts, words."""

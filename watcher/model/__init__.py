"""What a change and a window are, and every error."""

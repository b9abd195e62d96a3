"""What is written, and when; and whether it arrived, once, in order, how late."""

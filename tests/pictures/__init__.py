"""The pictures of the documentation, made of the program itself: ``make pictures``."""

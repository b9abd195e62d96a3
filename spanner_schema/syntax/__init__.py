"""DDL text in both dialects, read into steps and written from them."""

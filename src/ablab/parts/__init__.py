"""Parts: the classes and functions that options name, found and read without importing them, then imported."""

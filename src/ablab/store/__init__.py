"""The store: files that a run leaves on disk, and functions that find and read them."""

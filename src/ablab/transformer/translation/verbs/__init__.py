"""Verbs of translation, one file each: a function of the same name takes the words and returns the exit code."""

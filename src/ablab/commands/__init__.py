"""The command line and its verbs, a file each: a function of the same name takes words and returns the exit code."""

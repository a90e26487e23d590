"""The commands, one file per verb: a function of the same name takes the remaining words and returns the exit code."""

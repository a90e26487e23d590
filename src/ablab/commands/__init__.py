"""The verbs, one file each: a function of the same name takes the words that follow, and gives the exit code."""

"""Studies: what is to be compared, fixed before any run."""

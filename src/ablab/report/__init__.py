"""Records in, a report out: statistics, verdicts, tables and pictures. Neither torch nor a network is needed."""

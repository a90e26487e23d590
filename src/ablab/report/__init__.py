"""The report: statistics, verdicts, tables and pictures computed from run records, without torch or a network."""

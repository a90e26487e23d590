"""The judge: what the runs of a study show, as data, computed from their records without torch."""

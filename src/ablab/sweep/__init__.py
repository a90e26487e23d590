"""The sweep: the runs of a study or a search that are left, launched, watched and summed up."""

"""The sweep: the runs of a study or a search that are left, done, watched and summed up."""

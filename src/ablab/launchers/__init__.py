"""Where runs are made: processes of this machine, tasks of a Ray cluster, jobs of a queue."""

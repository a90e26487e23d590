"""Launchers: they execute runs as processes of this machine, tasks of a Ray cluster, or jobs of a queue."""

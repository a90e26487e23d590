"""The task of anybody's program: a run is a command, filled in for an arm and a seed, and the scores that it writes."""

"""What a run is: the interface of a task, and the scores that it declares. The platform knows a task by these alone."""

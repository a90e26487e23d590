"""What a run is: the interface of a task, the scores that it declares, and the verbs: all the platform knows of it."""

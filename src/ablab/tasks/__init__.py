"""What a run is: the interface of a task, the scores it declares, the plan and the identity of a run, and the verbs."""

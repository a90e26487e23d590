"""What the selected weights of a run show beside their scores: computed once, kept as artefacts of the run."""

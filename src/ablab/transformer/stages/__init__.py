"""The stages of a run that use torch, one file each: training, evaluation, pruning curve, analyses, dry run."""

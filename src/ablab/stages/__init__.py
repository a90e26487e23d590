"""What a run does with torch, one file a stage: training, evaluation, the pruning curve, analyses, a dry run."""

"""Hyperparameter search with Optuna: the space, the sampler and the trials; independent of studies and of torch."""

"""Search of settings with Optuna: a space, trials that are asked for and told. It knows no studies and no torch."""

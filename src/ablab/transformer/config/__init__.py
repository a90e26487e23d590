"""The settings of a translation run, and what of them decides its weights, evaluations and curves."""

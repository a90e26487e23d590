"""Statistics of the report: pure functions of arrays and a generator, independent of files, runs and torch.

Three sources of uncertainty are kept apart. *Seeds*, with the test set fixed: `paired`, the primary inference. *Seeds
and sentences*: `resampling.crossed_bootstrap`. *Sentences alone*, with the runs fixed: `resampling.Swaps`.
"""

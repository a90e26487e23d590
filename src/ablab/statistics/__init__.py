"""Statistics of the report: pure functions of arrays and a generator. Nothing here knows of files, runs or torch.

Three sources of doubt are kept apart. *Seeds*, with the test set as it is: `paired`, the primary inference. *Seeds and
sentences*: `bootstrap`. *Sentences alone*, with the runs as they are: `randomisation`.
"""

"""The origin of a result: the code that decides numbers, the versions of libraries, and the machine."""

from ablab.provenance.code import code, code_digest
from ablab.provenance.differences import (
    NUMERICAL,
    numerical_versions,
    other_code,
    other_judge,
    other_origin,
    other_versions,
)
from ablab.provenance.equal import representative, same_code
from ablab.provenance.machine import commit, fast_bfloat16, processor, provenance, versions

__all__ = [
    "NUMERICAL",
    "code",
    "code_digest",
    "commit",
    "fast_bfloat16",
    "numerical_versions",
    "other_code",
    "other_judge",
    "other_origin",
    "other_versions",
    "processor",
    "provenance",
    "representative",
    "same_code",
    "versions",
]

"""The origin of a result: the code that decides numbers, the versions of libraries, and the machine."""

from ablab.provenance.code import Code, code, code_digest, read_sources
from ablab.provenance.differences import (
    NUMERICAL,
    made_by,
    numerical_versions,
    of_other_version,
    other_code,
    other_judge,
    other_origin,
    other_versions,
)
from ablab.provenance.equal import RecordedCode, comparable, same_code
from ablab.provenance.machine import commit, fast_bfloat16, processor, provenance, versions

__all__ = [
    "NUMERICAL",
    "Code",
    "RecordedCode",
    "code",
    "code_digest",
    "commit",
    "comparable",
    "fast_bfloat16",
    "made_by",
    "numerical_versions",
    "of_other_version",
    "other_code",
    "other_judge",
    "other_origin",
    "other_versions",
    "processor",
    "provenance",
    "read_sources",
    "same_code",
    "versions",
]

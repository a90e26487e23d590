"""Order of the packages: what may import what, and what loads no heavy library. A test holds the code to both."""

WINGS = ("transformer",)
"""Packages whose own packages are rooms, each with a level of its own."""

LEVELS = (
    ("ablab", "former", "transformer"),
    ("errors", "fields", "text", "files", "code", "seeding", "statistics"),
    ("config",),
    ("transformer.model",),
    ("transformer.data",),
    ("store",),
    ("tasks",),
    ("transformer.config",),
    ("tracking",),
    ("search",),
    ("transformer.analysis", "transformer.pruning"),
    ("transformer.decoding",),
    ("transformer.training",),
    ("transformer.export",),
    ("transformer.stages",),
    ("transformer.translation",),
    ("transformer.language_model",),
    ("run",),
    ("study",),
    ("judge",),
    ("sweep",),
    ("report",),
    ("api",),
    ("commands",),
    ("__main__",),
)
"""Each package imports from its own level and from those above it in this list, wherever the import stands."""

LIGHT = (
    "former",
    "errors",
    "fields",
    "text",
    "files",
    "config",
    "code",
    "seeding",
    "store",
    "tasks",
    "statistics",
    "tracking",
    "search",
    "run",
    "study",
    "judge",
    "sweep",
    "report",
    "api",
    "commands",
)
"""What plans, says or reports loads none of the heavy libraries."""

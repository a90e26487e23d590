"""Order of the packages: what may import what, and what loads no heavy library. A test holds the code to both."""

LEVELS = (
    ("ablab",),
    (
        "errors",
        "fields",
        "files",
        "lines",
        "seeding",
        "syntax",
        "provenance",
        "threads",
        "statistics",
    ),
    ("model",),
    ("data",),
    ("config",),
    ("identity", "store", "scoring"),
    ("console", "plan"),
    ("tracking",),
    ("search",),
    ("analysis", "pruning"),
    ("decoding",),
    ("training",),
    ("build",),
    ("export",),
    ("stages",),
    ("run",),
    ("launchers",),
    ("study",),
    ("report",),
    ("commands",),
    ("cli",),
    ("__main__",),
)
"""Each package imports from its own level and from those above it in this list, wherever the import stands."""

LIGHT = (
    *("errors", "fields", "files", "lines", "seeding", "threads", "config", "identity", "plan", "store"),
    *(
        "syntax",
        "provenance",
        "tracking",
        "console",
        "scoring",
        "run",
        "launchers",
        "search",
        "study",
        "statistics",
        "report",
    ),
    *("commands", "cli"),
)
"""What plans, says or reports loads none of the heavy libraries."""

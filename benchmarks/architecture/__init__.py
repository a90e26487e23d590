"""The map of the code: docs/architecture.md, made from the sources."""

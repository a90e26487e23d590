"""The verbs of language models."""

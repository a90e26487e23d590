"""The Transformer and its parts: each takes numbers and other parts, never the configuration."""

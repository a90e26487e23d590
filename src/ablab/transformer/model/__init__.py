"""The Transformer and its parts, built from numbers and other parts and never from the configuration."""

"""Ablation studies of encoder-decoder Transformers in machine translation."""

__version__ = "0.1.0"

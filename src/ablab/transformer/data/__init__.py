"""Corpora, tokenizers, and the training batches of each step."""

"""Corpora, tokenizers, and the batches of each training step."""

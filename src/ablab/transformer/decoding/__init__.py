"""Greedy and beam search, the translation of text, and decoding speed."""

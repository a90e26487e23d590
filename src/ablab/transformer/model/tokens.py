"""Ids of the special tokens, equal in every vocabulary."""

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SPECIAL = (UNK, PAD, BOS, EOS)

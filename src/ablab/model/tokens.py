"""The ids that mean something to the model, equal in every vocabulary."""

UNK, PAD, BOS, EOS = 0, 1, 2, 3
SPECIAL = (UNK, PAD, BOS, EOS)

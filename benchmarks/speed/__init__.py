"""Speed of training and decoding, beside others that do the same on the same text."""

"""Greedy and beam search, and a translator from text to text."""

"""Deliberate faults, and whether the tests notice them."""

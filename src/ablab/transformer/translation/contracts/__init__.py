"""Contracts: the laws that every part of a kind keeps, ablab's own and those of users, checked by running it."""

"""Code as data: parts from outside, syntax trees, code digests, and the origin of a result."""

"""Python sources read as syntax trees, without importing them: definitions, names, signatures and digests."""

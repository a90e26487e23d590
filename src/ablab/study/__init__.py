"""Studies: many runs that answer one question. Nothing here depends on Transformers or imports torch."""

"""Studies: many runs that answer one question. Nothing here knows of Transformers, or imports torch."""

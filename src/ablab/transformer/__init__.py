"""The Transformer: all that is known of training one, from its corpus to its export."""

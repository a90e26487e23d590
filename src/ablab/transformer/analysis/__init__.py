"""Analysis of a trained model: attention, positions, next tokens, heads, learned scales. The model stays unchanged."""

from ablab.transformer.analysis.inspect import (
    attention_maps,
    attentions,
    cross_attention,
    draw_attention,
    draw_translation,
    importance,
    learned_scales,
    masked,
)

__all__ = [
    "attention_maps",
    "attentions",
    "cross_attention",
    "draw_attention",
    "draw_translation",
    "importance",
    "learned_scales",
    "masked",
]

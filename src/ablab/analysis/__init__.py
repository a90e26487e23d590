"""Analysis of a trained model: attention maps, the importance of heads, learned scales. The model stays unchanged."""

from ablab.analysis.inspect import attentions, cross_attention, draw_attention, importance, learned_scales, masked

__all__ = ["attentions", "cross_attention", "draw_attention", "importance", "learned_scales", "masked"]

"""Looking inside a model: a model in, numbers out, and the model as it was."""

from ablab.analysis.inspect import attentions, cross_attention, draw_attention, importance, learned_scales, masked

__all__ = ["attentions", "cross_attention", "draw_attention", "importance", "learned_scales", "masked"]

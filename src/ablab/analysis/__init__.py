"""Looking inside a model: a model in, numbers out, and the model as it was."""

from ablab.analysis.attention import cross_attention, draw_attention
from ablab.analysis.heads import attentions, importance, masked
from ablab.analysis.scales import learned_scales

__all__ = ["attentions", "cross_attention", "draw_attention", "importance", "learned_scales", "masked"]

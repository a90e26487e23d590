"""Trained models for the inference engines of others."""

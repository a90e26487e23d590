"""Export of trained models to inference engines of other projects."""

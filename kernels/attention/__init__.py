"""Attention of ragged rows over one shared copy of the prompt's keys and values (bifurcated attention)."""

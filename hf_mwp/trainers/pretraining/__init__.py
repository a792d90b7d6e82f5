"""Pretraining of encoders."""

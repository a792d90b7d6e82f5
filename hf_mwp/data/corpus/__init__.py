"""Texts without equations, tagged and encoded for pretraining."""

"""Objectives on layers: hidden states, attention and relations."""

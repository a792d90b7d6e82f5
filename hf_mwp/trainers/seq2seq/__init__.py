"""Training and evaluation of sequence-to-sequence models."""

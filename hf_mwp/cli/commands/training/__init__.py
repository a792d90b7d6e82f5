"""Commands that train: what is trained, and the run around it."""

"""Commands that train models."""

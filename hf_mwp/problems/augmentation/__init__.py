"""New problems made from others by rules."""

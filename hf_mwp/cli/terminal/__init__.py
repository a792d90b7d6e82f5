"""Terminal output and input of the commands."""

"""Commands that run other commands."""

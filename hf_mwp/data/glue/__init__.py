"""Tasks of GLUE."""

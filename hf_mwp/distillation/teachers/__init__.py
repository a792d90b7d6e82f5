"""Sources of a teacher's outputs: a teacher that runs on every batch, or a cache on disk."""

"""Storage of files and rows on disk: atomic writes, locks, checkpoints, checksums and memory mapping."""

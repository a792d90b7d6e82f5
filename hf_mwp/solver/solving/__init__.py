"""Functions that solve datasets: batching, search, re-ranking, scoring and pseudo-labels."""

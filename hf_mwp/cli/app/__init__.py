"""The page of `hf-mwp app`, served on this machine alone."""

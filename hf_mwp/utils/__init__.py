"""Files, folders of results, options, checks and downloads."""

"""Command-line interface `hf-mwp`, with one file per subcommand, which is imported when it is called."""

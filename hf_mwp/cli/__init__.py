"""The command `hf-mwp`. One file per subcommand; each is imported when it is called."""

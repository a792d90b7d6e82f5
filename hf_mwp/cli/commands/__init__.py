"""The subcommands, one file each, some grouped in folders."""

"""The subcommands, one file each; those that train models are in a folder."""

"""The subcommands, one file each, here or in a folder of those that have something in common."""

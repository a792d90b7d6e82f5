"""The command line `hf-mwp`, tasks, recipes and publishing."""

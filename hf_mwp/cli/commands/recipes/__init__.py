"""Commands that run other commands: recipes, and tables of recipes."""

"""A table as a grid of changes of a recipe: columns and arms."""

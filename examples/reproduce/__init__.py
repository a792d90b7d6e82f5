"""Tables of the papers: grids of recipes, their results, and the Markdown and pictures made of them."""

"""From names, sizes and layers to models and processors."""

"""One function for each command that trains, prunes, labels or evaluates a model for a task."""

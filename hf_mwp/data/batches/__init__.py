"""Processor, collators and target trees that convert problems to batches of model inputs."""

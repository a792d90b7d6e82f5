"""A run's folder: options, environment, figures, and how an interrupted run goes on."""

"""Training of solvers."""

"""What is learned: its data, models and figures."""

"""Output folder of a run (options, environment, metrics, log), and the processes of a distributed run."""

"""A whole set solved: batches, search, plausible answers, reasons of failure, and equations from answers."""

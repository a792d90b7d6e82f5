"""Metrics of classifiers, generated texts and costs."""

"""Objectives on layers."""

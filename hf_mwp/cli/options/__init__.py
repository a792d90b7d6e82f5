"""From YAML files and flags to the fields of dataclasses."""

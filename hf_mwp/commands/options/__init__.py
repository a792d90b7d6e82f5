"""Reading of options from YAML files and flags."""

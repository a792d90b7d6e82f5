"""Command options: dataclass fields that are read from YAML files and flags."""

from .option import affects_result, default_of, given_options, option, option_values, options_in


__all__ = ["affects_result", "default_of", "given_options", "option", "option_values", "options_in"]

"""Options of commands: dataclass fields, read from YAML files and flags."""

from .option import CommandOption, affects_result, default_of, given_options, option, option_values, options_in


__all__ = ["CommandOption", "affects_result", "default_of", "given_options", "option", "option_values", "options_in"]

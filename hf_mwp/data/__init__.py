"""Data sets in one schema, and what turns them into batches."""

from importlib import import_module


_MODULES = {
    "DataError": "errors",
    "LoadReport": "load_report",
    "MwpCollator": "collator",
    "MwpProcessor": "mwp_processor",
    "OutputVocabulary": "output_vocabulary",
    "TreeBatch": "tree_batch",
    "load_mwp_dataset": "load",
    "problem_from_row": "load",
}

__all__ = list(_MODULES)


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

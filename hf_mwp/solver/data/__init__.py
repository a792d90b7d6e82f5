"""Datasets of math word problems in one schema. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "data_error": ("DataError",),
    "load_report": (
        "LoadReport",
        "dataset_report",
    ),
    "loading": ("load_mwp_dataset",),
    "mwp_loader": ("MwpLoader",),
    "schema": (
        "FEATURES",
        "problem_from_row",
    ),
    "sources": ("LOADERS", "add_dataset"),
    "training_texts": ("TrainingTexts",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

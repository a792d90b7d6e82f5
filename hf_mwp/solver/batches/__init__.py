"""Processors and collators, which encode problems. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "mwp_collator": ("MwpCollator",),
    "mwp_processor": ("MwpProcessor",),
    "tree_batch": ("TreeBatch",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

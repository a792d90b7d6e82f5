"""Pretraining texts: reading, part-of-speech tags and masking. Modules are imported on first use."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "pretraining_collator": ("PreTrainingCollator",),
    "pretraining_dataset": ("encode_corpus",),
    "pretraining_encoder": (
        "PreTrainingEncoder",
        "pos_label_list",
    ),
    "pretraining_texts": ("read_texts",),
    "tagged_corpus": (
        "TaggedCorpus",
        "tag_corpus",
    ),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

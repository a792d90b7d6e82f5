"""Data sets in one schema, and what turns them into batches. What a name needs is loaded when it is used."""

from importlib import import_module


_MODULES = {
    "DataError": "data_error",
    "FEATURES": "schema",
    "LOADERS": "sources",
    "LoadReport": "load_report",
    "MwpCollator": "collator",
    "MwpLoader": "mwp_loader",
    "MwpProcessor": "mwp_processor",
    "OutputVocabulary": "output_vocabulary",
    "PreTrainingCollator": "pretraining_collator",
    "PreTrainingEncoder": "pretraining_encoder",
    "TaggedCorpus": "tagged_corpus",
    "TrainingTexts": "training_texts",
    "TreeBatch": "tree_batch",
    "dataset_report": "load_report",
    "encode_corpus": "encoded_corpus",
    "load_mwp_dataset": "load",
    "pos_label_list": "pretraining_encoder",
    "problem_from_row": "schema",
    "read_texts": "pretraining_texts",
    "tag_corpus": "tagged_corpus",
}

__all__ = list(_MODULES)


def __getattr__(name: str):
    if name in _MODULES:
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

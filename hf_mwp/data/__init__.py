"""Datasets in one schema, and processors and collators that encode them. Modules are imported on first use."""

from ..lazy_names import lazy_names


_MODULES = {
    "DataError": "data_error",
    "FEATURES": "reading.schema",
    "LOADERS": "datasets.sources",
    "LoadReport": "reading.load_report",
    "MwpCollator": "batches.mwp_collator",
    "MwpLoader": "datasets.mwp_loader",
    "MwpProcessor": "batches.mwp_processor",
    "OutputVocabulary": ".runtime.output_vocabulary",
    "PreTrainingCollator": "corpus.pretraining_collator",
    "PreTrainingEncoder": "corpus.pretraining_encoder",
    "TaggedCorpus": "corpus.tagged_corpus",
    "TrainingTexts": "training_texts",
    "TreeBatch": "batches.tree_batch",
    "dataset_report": "reading.load_report",
    "encode_corpus": "corpus.pretraining_dataset",
    "load_glue": "datasets.glue",
    "load_mwp_dataset": "datasets.loading",
    "pos_label_list": "corpus.pretraining_encoder",
    "problem_from_row": "reading.schema",
    "read_texts": "corpus.pretraining_texts",
    "tag_corpus": "corpus.tagged_corpus",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

"""Datasets in one schema, and processors and collators that encode them. Modules are imported on first use."""

from ..lazy_names import lazy_names


_NAMES = {
    ".runtime.output_vocabulary": ("OutputVocabulary",),
    "batches.mwp_collator": ("MwpCollator",),
    "batches.mwp_processor": ("MwpProcessor",),
    "batches.tree_batch": ("TreeBatch",),
    "corpus.pretraining_collator": ("PreTrainingCollator",),
    "corpus.pretraining_dataset": ("encode_corpus",),
    "corpus.pretraining_encoder": ("PreTrainingEncoder", "pos_label_list"),
    "corpus.pretraining_texts": ("read_texts",),
    "corpus.tagged_corpus": ("TaggedCorpus", "tag_corpus"),
    "data_error": ("DataError",),
    "datasets.glue": ("load_glue",),
    "datasets.loading": ("load_mwp_dataset",),
    "datasets.mwp_loader": ("MwpLoader",),
    "datasets.sources": ("LOADERS",),
    "reading.load_report": ("LoadReport", "dataset_report"),
    "reading.schema": ("FEATURES", "problem_from_row"),
    "training_texts": ("TrainingTexts",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

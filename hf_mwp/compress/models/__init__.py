"""Encoders: the student, and other types with fewer heads. Importing this package registers them."""

from transformers import CONFIG_MAPPING, AutoConfig

from .architecture import ARCHITECTURES
from .cut_model import cut_class
from .mwp_student import (
    MwpStudentConfig,
    MwpStudentForMaskedLM,
    MwpStudentForMultipleChoice,
    MwpStudentForPreTraining,
    MwpStudentForQuestionAnswering,
    MwpStudentForSequenceClassification,
    MwpStudentForTokenClassification,
    MwpStudentModel,
)


# Encoders without some of their heads. Students count their heads themselves. Older versions of Transformers lack some
# of these types.
for _type in ARCHITECTURES:
    if _type != MwpStudentConfig.model_type and _type in CONFIG_MAPPING:
        _config_class = cut_class(CONFIG_MAPPING[_type])
        AutoConfig.register(_config_class.model_type, _config_class)

__all__ = [
    "MwpStudentConfig",
    "MwpStudentForMaskedLM",
    "MwpStudentForMultipleChoice",
    "MwpStudentForPreTraining",
    "MwpStudentForQuestionAnswering",
    "MwpStudentForSequenceClassification",
    "MwpStudentForTokenClassification",
    "MwpStudentModel",
]

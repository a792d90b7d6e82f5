from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForPreTraining,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from .configuration_mwp_student import MwpStudentConfig
from .modeling_mwp_student import (
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from .remote_code import save_student_code
from .task_heads_mwp_student import (
    MwpStudentForMultipleChoice,
    MwpStudentForQuestionAnswering,
    MwpStudentForTokenClassification,
)


AutoConfig.register(MwpStudentConfig.model_type, MwpStudentConfig)
AutoModel.register(MwpStudentConfig, MwpStudentModel)
AutoModelForMaskedLM.register(MwpStudentConfig, MwpStudentForMaskedLM)
AutoModelForPreTraining.register(MwpStudentConfig, MwpStudentForPreTraining)
AutoModelForSequenceClassification.register(MwpStudentConfig, MwpStudentForSequenceClassification)
AutoModelForTokenClassification.register(MwpStudentConfig, MwpStudentForTokenClassification)
AutoModelForQuestionAnswering.register(MwpStudentConfig, MwpStudentForQuestionAnswering)
AutoModelForMultipleChoice.register(MwpStudentConfig, MwpStudentForMultipleChoice)

__all__ = [
    "MwpStudentConfig",
    "MwpStudentForMaskedLM",
    "MwpStudentForMultipleChoice",
    "MwpStudentForPreTraining",
    "MwpStudentForQuestionAnswering",
    "MwpStudentForSequenceClassification",
    "MwpStudentForTokenClassification",
    "MwpStudentModel",
    "save_student_code",
]

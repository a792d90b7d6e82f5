from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
)

from .configuration_mwp_student import MwpStudentConfig
from .modeling_mwp_student import (
    MwpStudentForMaskedLM,
    MwpStudentForPreTraining,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from .remote_code import save_student_code


AutoConfig.register(MwpStudentConfig.model_type, MwpStudentConfig)
AutoModel.register(MwpStudentConfig, MwpStudentModel)
AutoModelForMaskedLM.register(MwpStudentConfig, MwpStudentForMaskedLM)
AutoModelForPreTraining.register(MwpStudentConfig, MwpStudentForPreTraining)
AutoModelForSequenceClassification.register(MwpStudentConfig, MwpStudentForSequenceClassification)

__all__ = [
    "MwpStudentConfig",
    "MwpStudentForMaskedLM",
    "MwpStudentForPreTraining",
    "MwpStudentForSequenceClassification",
    "MwpStudentModel",
    "save_student_code",
]

from transformers import AutoConfig, AutoModel

from .configuration_athena import AthenaConfig
from .modeling_athena import AthenaModel, AthenaOutput
from .plan_batch import AthenaCollator, PlanBatch


AutoConfig.register(AthenaConfig.model_type, AthenaConfig)
AutoModel.register(AthenaConfig, AthenaModel)

__all__ = ["AthenaCollator", "AthenaConfig", "AthenaModel", "AthenaOutput", "PlanBatch"]

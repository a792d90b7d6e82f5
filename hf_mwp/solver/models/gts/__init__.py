from transformers import AutoConfig, AutoModel

from .configuration_gts import GTSConfig
from .modeling_gts import GTSDecoder


AutoConfig.register(GTSConfig.model_type, GTSConfig)
AutoModel.register(GTSConfig, GTSDecoder)

__all__ = ["GTSConfig", "GTSDecoder"]

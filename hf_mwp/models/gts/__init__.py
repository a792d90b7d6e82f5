from transformers import AutoConfig, AutoModel

from ..solver import SolveOutput
from .configuration_gts import GTSConfig
from .gts_output import DecoderMemory, GTSOutput
from .modeling_gts import GTSDecoder


AutoConfig.register(GTSConfig.model_type, GTSConfig)
AutoModel.register(GTSConfig, GTSDecoder)

__all__ = ["DecoderMemory", "GTSConfig", "GTSDecoder", "GTSOutput", "SolveOutput"]

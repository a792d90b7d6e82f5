from transformers import AutoConfig, AutoModel

from ..solver import SolveOutput
from .configuration_gts import GTSConfig
from .modeling_gts import GTSDecoder, GTSOutput
from .tree_search import DecoderMemory


AutoConfig.register(GTSConfig.model_type, GTSConfig)
AutoModel.register(GTSConfig, GTSDecoder)

__all__ = ["DecoderMemory", "GTSConfig", "GTSDecoder", "GTSOutput", "SolveOutput"]

from transformers import AutoConfig, AutoModel

from .configuration_gts import GTSConfig
from .modeling_gts import DecoderMemory, GTSDecoder, GTSOutput
from .tree_search import SolveOutput


AutoConfig.register(GTSConfig.model_type, GTSConfig)
AutoModel.register(GTSConfig, GTSDecoder)

__all__ = ["DecoderMemory", "GTSConfig", "GTSDecoder", "GTSOutput", "SolveOutput"]

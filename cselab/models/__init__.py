"""Models: stock transformers backbones, poolings, the twin and its cross-attention layers."""

from cselab.models.adapters import add_lora, decoder_memory, merge_lora
from cselab.models.backbone import load_backbone, longest_input
from cselab.models.cross_attention import cael_positions
from cselab.models.decoder import load_decoder
from cselab.models.encode import encode, evaluating
from cselab.models.ensemble import Ensemble
from cselab.models.exporting import export
from cselab.models.foreign import ForeignEncoder
from cselab.models.loading import load, with_pooling
from cselab.models.pooling import POOLINGS, pool
from cselab.models.sentence import SentenceEncoder
from cselab.models.surgery import remove_layer_norms
from cselab.models.tokenizer import load_tokenizer
from cselab.models.twin import CROSS_STREAMS, TwinEncoder, TwinOutput

__all__ = [
    "CROSS_STREAMS",
    "POOLINGS",
    "Ensemble",
    "ForeignEncoder",
    "SentenceEncoder",
    "TwinEncoder",
    "TwinOutput",
    "add_lora",
    "cael_positions",
    "decoder_memory",
    "encode",
    "evaluating",
    "export",
    "load",
    "load_backbone",
    "load_decoder",
    "load_tokenizer",
    "longest_input",
    "merge_lora",
    "pool",
    "remove_layer_norms",
    "with_pooling",
]

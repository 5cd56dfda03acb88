"""Models: stock transformers backbones, poolings, the twin and its cross-attention layers."""

from cselab.models.backbone import load_backbone, load_tokenizer, longest_input
from cselab.models.cross_attention import cael_positions
from cselab.models.decoder import (
    BIDIRECTIONAL,
    add_lora,
    load_decoder,
    make_bidirectional,
    merge_lora,
)
from cselab.models.encode import encode, evaluating
from cselab.models.ensemble import Ensemble
from cselab.models.exporting import export
from cselab.models.flow import Flowed
from cselab.models.loading import load
from cselab.models.pooling import POOLINGS, pool
from cselab.models.repooling import with_pooling
from cselab.models.sentence import SentenceEncoder
from cselab.models.surgery import remove_layer_norms
from cselab.models.twin import CROSS_STREAMS, TwinEncoder, TwinOutput
from cselab.models.whitening import Whitened

__all__ = [
    "BIDIRECTIONAL",
    "CROSS_STREAMS",
    "POOLINGS",
    "Ensemble",
    "Flowed",
    "SentenceEncoder",
    "TwinEncoder",
    "TwinOutput",
    "Whitened",
    "add_lora",
    "cael_positions",
    "encode",
    "evaluating",
    "export",
    "load",
    "load_backbone",
    "load_decoder",
    "load_tokenizer",
    "longest_input",
    "make_bidirectional",
    "merge_lora",
    "pool",
    "remove_layer_norms",
    "with_pooling",
]

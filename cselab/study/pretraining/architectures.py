"""Settings and architectures of small backbones, with embeddings that start from word vectors."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import nn
from transformers import (
    AutoConfig,
    BertForPreTraining,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from cselab.data.token_rows import Rows
from cselab.methods.baselines.sif import cooccurrence, ppmi_vectors
from cselab.study.pretraining.trainer import ModelConfig

Kind: TypeAlias = Literal["bert", "llama"]
DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")
MODELS: dict[str, Any] = {"bert": BertForPreTraining, "llama": LlamaForCausalLM}


@dataclass(frozen=True)
class BackboneConfig(ModelConfig):
    """Settings of a backbone; defaults, except `steps`, as shipped."""

    layers: int = 6
    vocab_size: int = 8000
    """With 8,000 words and the other defaults, a backbone has 8 MB."""
    max_length: int = 48
    """Tokens per sentence."""
    max_positions: int = 128
    held_out: int = 2000
    """Sentences for the held-out loss."""
    masked: float = 0.3
    """Share of masked words in single sentences; this and what follows are for a BERT."""
    bag_weight: float = 3.0
    """Weight of the bag-of-words loss; with 1, [CLS] scored a point less on STS-B dev. 0: none."""
    dropout: float = 0.1
    """As BERT; contrastive training makes its views with it."""
    dropout_last: float = 0.15
    """Share of the steps, the last ones, with dropout: drawing masks takes a third of the time."""
    pair_every: int = 8
    """With ordered text, one of so many steps is on sentence pairs."""


def build_model(
    kind: Kind, config: BackboneConfig, tokenizer: PreTrainedTokenizerBase
) -> PreTrainedModel:
    """A model with random weights."""
    shape: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": config.width,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "pad_token_id": tokenizer.pad_token_id,
        "max_position_embeddings": config.max_positions,
    }
    if kind == "llama":
        inner = 2 * config.inner // 3  # SwiGLU has three matrices, BERT two
        shape |= {"bos_token_id": tokenizer.cls_token_id, "eos_token_id": tokenizer.sep_token_id}
        shape |= {"intermediate_size": inner, "tie_word_embeddings": True}
    else:
        shape |= dict.fromkeys(DROPOUTS, config.dropout) | {"intermediate_size": config.inner}
    return MODELS[kind](AutoConfig.for_model(kind, **shape))


@torch.no_grad()
def init_embeddings(embedding: nn.Embedding, rows: Rows, config: BackboneConfig) -> None:
    """Initialise embeddings with PPMI word vectors plus noise of the same length, at BERT's scale.

    The standard deviation is 0.02; words without counts keep their random vectors. With noise only,
    the loss stays on its unigram plateau for ten million tokens. With word vectors only, sentences
    of one topic are told apart worse than by their words; the noise keeps words apart.
    """
    counts = cooccurrence(rows, embedding.num_embeddings)
    vectors = ppmi_vectors(counts, config.width, seed=config.seed)
    start = torch.as_tensor(vectors, dtype=embedding.weight.dtype)
    known = start.norm(dim=1) > 1e-6
    start = F.normalize(start[known], dim=1) + F.normalize(embedding.weight[known], dim=1)
    embedding.weight[known] = 0.02 * start / start.std()

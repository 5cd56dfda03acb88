"""Models of sentence-transformers that their library runs."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from cselab.errors import ModelError
from cselab.models.texts import as_sentences

POOLING_MODES = {"cls": "cls", "mean": "mean", "last_token": "lasttoken"}
"""sentence-transformers' names of our poolings."""


class ForeignEncoder(nn.Module):
    """A model of sentence-transformers, which encodes as that library does.

    It can be evaluated and compared. What reads a BERT-like tower (methods, attention, LayerNorms)
    takes a SentenceEncoder.

    Args:
        model: Any `SentenceTransformer`.

    Examples:
        >>> from sentence_transformers import SentenceTransformer
        >>> from sentence_transformers.sentence_transformer.modules import StaticEmbedding
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import ForeignEncoder, load_tokenizer
        >>> words = StaticEmbedding(load_tokenizer(model_folder("tiny-bert")), embedding_dim=8)
        >>> model = SentenceTransformer(modules=[words], device="cpu")
        >>> ForeignEncoder(model).encode(["A dog sleeps."]).shape
        torch.Size([1, 8])
    """

    tokenizer = None  # its own cuts and counts are sentence-transformers'
    backbones = ()

    def __init__(self, model: Any):
        super().__init__()
        self.model = model

    def encode(self, sentences: Iterable[str], **options: Any) -> Float[Tensor, "n d"]:
        """Embeddings of sentences, in their order, float32 on the CPU; options are those of
        `SentenceTransformer.encode`. Raises DataError as `as_sentences`."""
        sentences, width = as_sentences(sentences), self.model.get_embedding_dimension()
        if not sentences:
            return torch.empty(0, width)
        options = {"show_progress_bar": False, **options}
        vectors = self.model.encode(sentences, convert_to_tensor=True, **options)
        return vectors.float().cpu().clone()  # out of inference mode

    def pooled_by(self, pooling: str) -> "ForeignEncoder":
        """The same transformer, read by another pooling. Raises ModelError for a pooling that
        sentence-transformers does not have, and a model without a transformer."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

        if pooling not in POOLING_MODES or not isinstance(self.model[0], Transformer):
            raise ModelError(
                f"pooling {pooling!r} of a {type(self.model[0]).__name__} of sentence-transformers"
                f"; expected {', '.join(POOLING_MODES)} of a Transformer"
            )
        pool = Pooling(self.model[0].get_embedding_dimension(), POOLING_MODES[pooling])
        return ForeignEncoder(SentenceTransformer(modules=[self.model[0], pool], device="cpu"))

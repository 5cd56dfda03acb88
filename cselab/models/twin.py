"""The twin: two towers on one batch, optionally with cross-attention between them in training."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError, suggest
from cselab.models.backbone import check_length, load_backbone
from cselab.models.cross_attention import cross_stream
from cselab.models.encode import encode
from cselab.models.folder import new_folder, read_card, write_card
from cselab.models.layers import (
    BERT_LIKE,
    context,
    embed_tokens,
    feed_forward,
    is_bert_like,
    run_tower,
)
from cselab.models.tokenizer import check_tokenizer, load_tokenizer_if_any

CROSS_STREAMS = ("parallel", "last_only", "fused")
Vectors = Float[Tensor, "B d"]


class TwinOutput(NamedTuple):
    """Outputs of both towers, (B, d) each.

    Attributes:
        cls_i: [CLS] of tower I's last layer.
        pooled_i: Tower I's pooler output; None without a pooler.
        cross_i: [CLS] of tower I's cross stream; None without CAELs, and of a fused twin.
    """

    cls_i: Tensor
    cls_ii: Tensor
    pooled_i: Tensor | None
    pooled_ii: Tensor | None
    cross_i: Tensor | None
    cross_ii: Tensor | None


class TwinEncoder(nn.Module):
    """Two BERT-like encoders of one shape; the embedding is the sum of their [CLS].

    TNCSE, https://arxiv.org/abs/2503.12739; JTCSE, https://arxiv.org/abs/2505.02366.

    Args:
        tower_i: The first encoder, from `load_backbone`.
        tower_ii: The second, of the same shape and vocabulary.
        cael: Layers, counted from 1, with cross attention (see `cael_positions`); empty for none.
        cross_stream: "parallel": each tower has a running cross stream beside it; the towers
            themselves do not change. "last_only": the output of the last CAEL only, without a
            running stream. "fused": the cross context is added to each tower's context, so that
            both towers must run together at inference too. The paper does not say which.
        tokenizer: The towers'; None for a twin that only gets token batches.

    Raises:
        ModelError: For decoders, towers of two shapes or vocabularies, an unknown cross stream,
            CAELs outside the depth, and a tokenizer of another model.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import TwinEncoder, cael_positions, load_backbone, load_tokenizer
        >>> folder = model_folder("tiny-bert")
        >>> towers = [load_backbone(folder), load_backbone(folder)]
        >>> tokenizer = load_tokenizer(folder)
        >>> twin = TwinEncoder(*towers, cael=cael_positions(6, every=2), tokenizer=tokenizer)
        >>> twin.encode(["A man plays a guitar."]).shape
        torch.Size([1, 192])
        >>> batch = tokenizer(["A man plays a guitar."], return_tensors="pt")
        >>> out = twin(batch["input_ids"])
        >>> out.cls_i.shape, out.cross_i.shape
        (torch.Size([1, 192]), torch.Size([1, 192]))
    """

    def __init__(
        self,
        tower_i: PreTrainedModel,
        tower_ii: PreTrainedModel,
        *,
        cael: tuple[int, ...] = (),
        cross_stream: str = "parallel",
        tokenizer: PreTrainedTokenizerBase | None = None,
    ):
        super().__init__()
        _check_towers(tower_i, tower_ii)
        depth = tower_i.config.num_hidden_layers
        if cross_stream not in CROSS_STREAMS:
            raise ModelError(
                f"unknown cross stream {cross_stream!r}; {suggest(cross_stream, CROSS_STREAMS)}"
            )
        if list(cael) != sorted(set(cael)) or not all(1 <= layer <= depth for layer in cael):
            raise ModelError(
                f"cael={cael} must be rising layer numbers from 1 to {depth}; cael_positions gives "
                "them"
            )
        check_tokenizer(tokenizer, tower_i)
        self.tower_i = tower_i
        self.tower_ii = tower_ii
        self.cael = tuple(cael)
        self.cross_stream = cross_stream
        self.tokenizer = tokenizer

    @property
    def backbones(self) -> tuple[PreTrainedModel, ...]:
        """Both towers."""
        return (self.tower_i, self.tower_ii)

    @property
    def is_fused(self) -> bool:
        """Whether the towers are mixed inside, so that neither runs alone."""
        return self.cross_stream == "fused" and bool(self.cael)

    def forward(
        self, input_ids: Int[Tensor, "B L"], attention_mask: Int[Tensor, "B L"] | None = None
    ) -> TwinOutput:
        """Run both towers on the same batch.

        The cross stream draws its dropout after both towers have drawn theirs, so that the towers
        compute the same with and without it, from one random state, bit for bit. The mask is 1 for
        tokens, 0 for padding; None: all are tokens. Raises ModelError for a batch wider than the
        towers have positions.
        """
        for tower in self.backbones:
            check_length(tower, input_ids.shape[1])
        cross: Sequence[Vectors | None] = (None, None)
        if self.is_fused:
            cls = self._fused(input_ids, attention_mask)
        else:
            cael = self.cael if self.cross_stream == "parallel" else self.cael[-1:]
            runs = [
                run_tower(tower, input_ids, attention_mask, keep=cael) for tower in self.backbones
            ]
            cls = [vectors for vectors, _, _ in runs]
            if cael:
                cross = self._cross(runs, cael)
        pooled = [
            None if tower.pooler is None else tower.pooler(vectors[:, None])
            for tower, vectors in zip(self.backbones, cls, strict=True)
        ]
        return TwinOutput(*cls, *pooled, *cross)

    def _cross(self, runs: list, cael: tuple[int, ...]) -> tuple[Vectors, Vectors]:
        """[CLS] of both cross streams, from the results of `run_tower`."""
        (_, inputs_i, mask_i), (_, inputs_ii, mask_ii) = runs
        cross_i = cross_stream(self.tower_i, self.tower_ii, cael, inputs_i, inputs_ii, mask_i)
        cross_ii = cross_stream(self.tower_ii, self.tower_i, cael, inputs_ii, inputs_i, mask_ii)
        return cross_i, cross_ii

    def _fused(self, input_ids: Tensor, attention_mask: Tensor | None) -> list[Vectors]:
        """[CLS] of both towers, each with the cross context added to its own at the CAELs."""
        (x, mask_x), (y, mask_y) = (
            embed_tokens(tower, input_ids, attention_mask) for tower in self.backbones
        )
        layers = zip(self.tower_i.encoder.layer, self.tower_ii.encoder.layer, strict=True)
        for number, (i, ii) in enumerate(layers, 1):
            if number not in self.cael:
                x, y = i(x, mask_x), ii(y, mask_y)
                continue
            context_i, context_ii = context(i, i, x, x, mask_x), context(ii, ii, y, y, mask_y)
            cross_i, cross_ii = context(i, ii, x, y, mask_x), context(ii, i, y, x, mask_y)
            x, y = (
                feed_forward(i, context_i + cross_i, x),
                feed_forward(ii, context_ii + cross_ii, y),
            )
        return [x[:, 0], y[:, 0]]

    def embed(self, batch: dict[str, Tensor]) -> Vectors:
        """The sum of both towers' [CLS]; the cross stream is not run, unless it is fused."""
        if self.is_fused:
            cls = self._fused(batch["input_ids"], batch["attention_mask"])
        else:
            inputs = (batch["input_ids"], batch["attention_mask"])
            cls = [run_tower(tower, *inputs)[0] for tower in self.backbones]
        return cls[0] + cls[1]

    def encode(self, sentences: Iterable[str], **options) -> Float[Tensor, "n d"]:
        """Embeddings of sentences, in their order; options as in `cselab.models.encode`."""
        return encode(self, sentences, **options)

    def save_pretrained(self, folder: str | Path) -> None:
        """Save as stock transformers folders, tower_i and tower_ii, and cselab.json, atomically."""
        with new_folder(folder) as target:
            for name, tower in zip(("tower_i", "tower_ii"), self.backbones, strict=True):
                tower.save_pretrained(target / name)
                if self.tokenizer is not None:
                    self.tokenizer.save_pretrained(target / name)
            write_card(target, "twin", cael=self.cael, cross_stream=self.cross_stream)

    @classmethod
    def from_pretrained(cls, folder: str | Path, **options) -> "TwinEncoder":
        """Load a saved twin; options and errors as in `load_backbone`."""
        card = read_card(folder, "twin", "cael", "cross_stream")
        towers = [load_backbone(Path(folder) / name, **options) for name in ("tower_i", "tower_ii")]
        tokenizer = load_tokenizer_if_any(Path(folder) / "tower_i")
        cael, cross_stream = tuple(card["cael"]), card["cross_stream"]
        return cls(*towers, cael=cael, cross_stream=cross_stream, tokenizer=tokenizer)


def _check_towers(tower_i: PreTrainedModel, tower_ii: PreTrainedModel) -> None:
    for name, tower in (("I", tower_i), ("II", tower_ii)):
        if not is_bert_like(tower.config):
            kind = "decoder" if getattr(tower.config, "is_decoder", False) else "model"
            raise ModelError(
                f"tower {name} is a {tower.config.model_type!r} {kind}; a twin needs layers of "
                f"{', '.join(BERT_LIKE)}, whose queries, keys and values can be crossed"
            )
    sizes = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
    for name in ("model_type", *sizes):
        i, ii = getattr(tower_i.config, name), getattr(tower_ii.config, name)
        if i != ii:
            raise ModelError(
                f"the towers differ in {name}: {i} and {ii}; a twin needs two encoders of one "
                "shape and vocabulary"
            )

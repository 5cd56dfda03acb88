"""Two towers read the same batch; cross-attention layers may let each read the other's values while training."""

from pathlib import Path
from typing import NamedTuple

from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError, suggest
from cselab.models.backbone import ENCODERS, check_length, check_tokenizer, load_backbone, load_tokenizer
from cselab.models.cross_attention import context, cross_stream, embed_tokens, feed_forward
from cselab.models.encode import encode
from cselab.models.folder import new_folder, read_card, write_card

CROSS_STREAMS = ("parallel", "last_only", "fused")
Vectors = Float[Tensor, "B d"]


class TwinOutput(NamedTuple):
    """[CLS] of the last layer, pooler output (None without a pooler), cross stream's [CLS] (None without CAELs)."""

    cls_i: Tensor
    cls_ii: Tensor
    pooled_i: Tensor | None
    pooled_ii: Tensor | None
    cross_i: Tensor | None
    cross_ii: Tensor | None


class TwinEncoder(nn.Module):
    """Two BERT-like encoders of one shape (TNCSE, JTCSE). Inference is the sum of their [CLS].

    cael: layers, from 1, at which the cross stream attends across (see `cael_positions`); empty for none.
    cross_stream: "parallel": a running stream a tower, beside the untouched towers. "last_only": only the last CAEL's
        output, without a running stream. "fused": the cross context is added to the own context inside the towers, which
        then must run together at inference too. METHODS 4: the paper does not say which.

    Raises ModelError for towers that differ in type, width, depth, heads or vocabulary, for a decoder, for CAELs
    outside the depth, and for a tokenizer that is not the towers'.
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
            raise ModelError(f"unknown cross stream {cross_stream!r}; {suggest(cross_stream, CROSS_STREAMS)}")
        if list(cael) != sorted(set(cael)) or not all(1 <= layer <= depth for layer in cael):
            raise ModelError(f"cael={cael} must be rising layer numbers from 1 to {depth}; cael_positions gives them")
        check_tokenizer(tokenizer, tower_i)
        self.tower_i = tower_i
        self.tower_ii = tower_ii
        self.cael = tuple(cael)
        self.cross_stream = cross_stream
        self.tokenizer = tokenizer

    @property
    def backbones(self) -> tuple[PreTrainedModel, ...]:
        return (self.tower_i, self.tower_ii)

    def forward(self, input_ids: Int[Tensor, "B L"], attention_mask: Int[Tensor, "B L"] | None = None) -> TwinOutput:
        """Both towers on the same batch; without a mask nothing is padding. The cross stream draws its dropout after
        both towers have drawn theirs, so that with and without it the towers compute the same, bit for bit.

        Raises ModelError for a batch wider than the towers have positions.
        """
        for tower in self.backbones:
            check_length(tower, input_ids.shape[1])
        if self.cross_stream == "fused" and self.cael:
            last = self._fused(input_ids, attention_mask)
            cross = (None, None)
        else:
            cael = self.cael if self.cross_stream == "parallel" else self.cael[-1:]
            runs = [_run(tower, input_ids, attention_mask, cael) for tower in self.backbones]
            last = [states for states, _, _ in runs]
            cross = self._cross(runs, cael) if cael else (None, None)
        pooled = [
            None if tower.pooler is None else tower.pooler(states)
            for tower, states in zip(self.backbones, last, strict=True)
        ]
        return TwinOutput(last[0][:, 0], last[1][:, 0], *pooled, *cross)

    def _cross(self, runs: list, cael: tuple[int, ...]) -> tuple[Vectors, Vectors]:
        (_, inputs_i, mask_i), (_, inputs_ii, mask_ii) = runs
        one = cross_stream(self.tower_i, self.tower_ii, cael, inputs_i, inputs_ii, mask_i)
        two = cross_stream(self.tower_ii, self.tower_i, cael, inputs_ii, inputs_i, mask_ii)
        return one[:, 0], two[:, 0]

    def _fused(self, input_ids: Tensor, attention_mask: Tensor | None) -> list[Float[Tensor, "B L d"]]:
        (x, mask_x), (y, mask_y) = (embed_tokens(tower, input_ids, attention_mask) for tower in self.backbones)
        layers = zip(self.tower_i.encoder.layer, self.tower_ii.encoder.layer, strict=True)
        for number, (one, two) in enumerate(layers, 1):
            if number in self.cael:
                own_x, own_y = context(one, one, x, x, mask_x), context(two, two, y, y, mask_y)
                across_x, across_y = context(one, two, x, y, mask_x), context(two, one, y, x, mask_y)
                x, y = feed_forward(one, own_x + across_x, x), feed_forward(two, own_y + across_y, y)
            else:
                x, y = one(x, mask_x), two(y, mask_y)
        return [x, y]

    def embed(self, batch: dict[str, Tensor]) -> Vectors:
        """Inference: the sum of the two towers' [CLS]; no pooler, and no cross stream unless it is fused."""
        if self.cross_stream == "fused" and self.cael:
            states = self._fused(batch["input_ids"], batch["attention_mask"])
        else:
            states = [
                tower(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state
                for tower in self.backbones
            ]
        return states[0][:, 0] + states[1][:, 0]

    def encode(self, sentences: list[str], **options) -> Float[Tensor, "n d"]:
        """Embeddings of sentences, in their order; options as in `cselab.models.encode`."""
        return encode(self, sentences, **options)

    def save_pretrained(self, folder: str | Path) -> None:
        """Two stock transformers folders, tower_i and tower_ii, plus cselab.json; safetensors, whole or not at all."""
        with new_folder(folder) as target:
            for name, tower in zip(("tower_i", "tower_ii"), self.backbones, strict=True):
                tower.save_pretrained(target / name)
                if self.tokenizer is not None:
                    self.tokenizer.save_pretrained(target / name)
            write_card(target, "twin", cael=self.cael, cross_stream=self.cross_stream)

    @classmethod
    def from_pretrained(cls, folder: str | Path, **options) -> "TwinEncoder":
        """What `save_pretrained` wrote; options as in `load_backbone`."""
        cael, cross_stream = read_card(folder, "twin", "TwinEncoder", "cael", "cross_stream")
        towers = [load_backbone(Path(folder) / name, **options) for name in ("tower_i", "tower_ii")]
        has_tokenizer = (Path(folder) / "tower_i" / "tokenizer.json").is_file()
        tokenizer = load_tokenizer(Path(folder) / "tower_i") if has_tokenizer else None
        return cls(*towers, cael=tuple(cael), cross_stream=cross_stream, tokenizer=tokenizer)


def _run(tower: PreTrainedModel, input_ids: Tensor, attention_mask: Tensor | None, keep: tuple[int, ...]):
    """The tower's own stream: last states, the inputs of the layers in `keep` (HD^{j-1}), and the mask."""
    states, mask = embed_tokens(tower, input_ids, attention_mask)
    inputs = {}
    for number, layer in enumerate(tower.encoder.layer, 1):
        if number in keep:
            inputs[number] = states
        states = layer(states, mask)
    return states, inputs, mask


def _check_towers(tower_i: PreTrainedModel, tower_ii: PreTrainedModel) -> None:
    for name, tower in (("I", tower_i), ("II", tower_ii)):
        if tower.config.model_type not in ENCODERS or getattr(tower.config, "is_decoder", False):
            raise ModelError(
                f"tower {name} is a {tower.config.model_type!r} decoder or of an unknown kind; expected one of {', '.join(ENCODERS)}"
            )
    for what in ("model_type", "hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"):
        one, two = getattr(tower_i.config, what), getattr(tower_ii.config, what)
        if one != two:
            raise ModelError(
                f"the towers differ in {what}: {one} and {two}; a twin needs two encoders of one shape and vocabulary"
            )

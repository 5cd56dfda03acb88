"""A single tower as a sentence encoder: a stock backbone, its tokenizer and its pooling."""

from collections.abc import Iterable
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from cselab.errors import ModelError, SettingsError, suggest
from cselab.models.adapters import ADAPTERS, has_lora, merge_lora, save_adapters
from cselab.models.backbone import check_length, is_encoder, load_backbone
from cselab.models.decoder import load_decoder
from cselab.models.encode import encode
from cselab.models.folder import new_folder, read_card, write_card
from cselab.models.layers import is_bert_like, run_tower
from cselab.models.pooling import POOLINGS, pool
from cselab.models.prompts import fill_prompt, prompt_template
from cselab.models.texts import as_sentences
from cselab.models.tokenizer import check_tokenizer, load_tokenizer_if_any, longest_text


class SentenceEncoder(nn.Module):
    """A backbone with a pooling: `forward(input_ids, attention_mask) -> (B, d)`.

    Pooling and prompt are saved with the model.

    Args:
        backbone: An encoder or a Llama-like decoder (`load_backbone`, `load_decoder`).
        tokenizer: The backbone's; None for an encoder that only gets token batches.
        pooling: One of POOLINGS (see `pool`); "pooler": the backbone's dense layer and tanh on
            [CLS]; or "mask": the state at the [MASK] of the prompt (PromptBERT,
            https://arxiv.org/abs/2201.04337).
        prompt: The template that `encode` puts every sentence into, or its name in
            `cselab.models.prompts`; "" for the sentence alone.
        normalized: Whether embeddings have length 1 (sentence-transformers' Normalize).

    Raises:
        ModelError: For a pooling that the backbone or the prompt does not have, and a tokenizer of
            another backbone.
        SettingsError: For a bad prompt.

    Examples:
        >>> from cselab.data.hub import model_folder
        >>> from cselab.models import SentenceEncoder, load_backbone, load_tokenizer
        >>> folder = model_folder("tiny-bert")
        >>> encoder = SentenceEncoder(load_backbone(folder), load_tokenizer(folder), pooling="mean")
        >>> encoder.encode(["A man plays a guitar.", "A dog sleeps."]).shape
        torch.Size([2, 192])
    """

    def __init__(
        self,
        backbone: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None,
        *,
        pooling: str = "cls",
        prompt: str = "",
        normalized: bool = False,
    ):
        super().__init__()
        poolings = (*POOLINGS, "pooler", "mask")
        if pooling not in poolings:
            raise ModelError(f"unknown pooling {pooling!r}; {suggest(pooling, poolings)}")
        mask = tokenizer.mask_token if tokenizer is not None else None
        if pooling == "mask" and (not mask or mask not in prompt):
            raise ModelError(
                f"pooling 'mask' reads the tokenizer's mask token in the prompt, and {prompt!r} "
                "has none"
            )
        if pooling == "pooler" and getattr(backbone, "pooler", None) is None:
            raise ModelError(
                "pooling 'pooler' reads the backbone's pooler, and it has none; draw one with "
                "load_backbone(..., pooler='fresh'), or use another pooling"
            )
        check_tokenizer(tokenizer, backbone)
        prompt_template(prompt)
        self.backbone = backbone
        self.tokenizer = tokenizer
        self.pooling = pooling
        self.prompt = prompt
        self.normalized = normalized

    @property
    def backbones(self) -> tuple[PreTrainedModel, ...]:
        """The backbone, as a tuple of one."""
        return (self.backbone,)

    def forward(
        self, input_ids: Int[Tensor, "B L"], attention_mask: Int[Tensor, "B L"] | None = None
    ) -> Float[Tensor, "B d"]:
        """Pooled states of a batch; the mask is 1 for tokens, 0 for padding, None: no padding.

        Raises ModelError for a batch wider than the backbone has positions.
        """
        check_length(self.backbone, input_ids.shape[1])
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        if self.pooling in ("cls", "pooler") and is_bert_like(self.backbone.config):
            cls, _, _ = run_tower(self.backbone, input_ids, attention_mask)
            return cls if self.pooling == "cls" else self.backbone.pooler(cls[:, None])
        all_layers = self.pooling in ("first_last", "last_two")
        output = self.backbone(
            input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=all_layers
        )
        if self.pooling == "mask":
            return self.at_mask(output.last_hidden_state, input_ids)
        if self.pooling == "pooler":
            return output.pooler_output
        states = output.hidden_states if all_layers else (output.last_hidden_state,)
        return pool(states, attention_mask, self.pooling)

    def embed(self, batch: dict[str, Tensor]) -> Float[Tensor, "B d"]:
        """Embeddings of a batch with `input_ids` and `attention_mask`, (B, L) each."""
        vectors = self(batch["input_ids"], batch["attention_mask"])
        return nn.functional.normalize(vectors, dim=-1) if self.normalized else vectors

    def at_mask(
        self, states: Float[Tensor, "B L d"], ids: Int[Tensor, "B L"]
    ) -> Float[Tensor, "B d"]:
        """The state at the last mask token of each row. Raises ModelError for a row without one."""
        assert self.tokenizer is not None  # pooling "mask" needs one
        is_mask = ids == self.tokenizer.mask_token_id
        if not is_mask.any(1).all():
            raise ModelError(
                "a text has no mask token: its prompt is cut off or missing; raise max_length"
            )
        last = is_mask.shape[1] - 1 - is_mask.flip(1).int().argmax(1)
        return states[torch.arange(len(ids), device=ids.device), last]

    def encode(
        self, sentences: Iterable[str], *, conditions: Iterable[str] | None = None, **options
    ) -> Float[Tensor, "n d"]:
        """Embeddings of sentences, in their order; options as in `cselab.models.encode`.

        conditions: one per sentence, for a prompt with {condition} (C-STS). Raises SettingsError
        for conditions without a prompt, and as `fill_prompt`; DataError as `cselab.models.encode`.
        """
        if conditions is not None and not self.prompt:
            raise SettingsError("conditions need a prompt with {condition} and {sentence}")
        sentences = as_sentences(sentences)
        if self.prompt and self.tokenizer is not None and sentences:
            if conditions is not None:
                conditions = as_sentences(conditions)
            length = options.get("max_length") or longest_text(self.backbone, self.tokenizer)
            sentences = fill_prompt(
                self.prompt, sentences, self.tokenizer, length, conditions=conditions
            )
        return encode(self, sentences, **options)

    def save_pretrained(self, folder: str | Path, *, merged: bool = False) -> None:
        """Save as a stock transformers folder (AutoModel loads it) plus cselab.json, atomically.

        Weights are safetensors. Of an encoder with LoRA adapters, these alone are saved, in peft's
        format, and the model that they adapt has to stay; `merged` first merges them into the
        weights, in place, for a stock folder.

        Raises:
            ModelError: For adapters of a model that is no longer there, and, if `merged`, for
                4-bit weights.
        """
        backbone, card = self.backbone, {}
        if merged and getattr(backbone, "is_quantized", False):
            raise ModelError(
                "4-bit weights do not merge without loss; load the encoder with four_bit=False"
            )
        if merged:
            merge_lora(backbone)
        with new_folder(folder) as target:
            if has_lora(backbone):
                card["decoder"] = save_adapters(backbone, target)
            else:
                backbone.save_pretrained(target)
            if self.tokenizer is not None:
                self.tokenizer.save_pretrained(target)
            card |= {name: getattr(self, name) for name in ("pooling", "prompt", "normalized")}
            write_card(target, "sentence", **card)

    @classmethod
    def from_pretrained(cls, folder: str | Path, **options) -> "SentenceEncoder":
        """Load a saved encoder; options are those of `load_backbone` or `load_decoder`.

        Raises ModelError for another folder, and for pooling "pooler" where the weights have no
        pooler, unless `pooler="fresh"`.
        """
        card = read_card(folder, "sentence", "pooling", "prompt")
        if (Path(folder) / ADAPTERS).is_file():
            backbone, tokenizer = load_decoder(folder, merged=False, **options)
        elif is_encoder(folder):
            if card["pooling"] == "pooler":
                options.setdefault("pooler", "required")
            tokenizer = load_tokenizer_if_any(folder)
            backbone = load_backbone(folder, **options)
        else:
            backbone, tokenizer = load_decoder(folder, **options)
        normalized = card.get("normalized", False)  # of older versions
        return cls(
            backbone,
            tokenizer,
            pooling=card["pooling"],
            prompt=card["prompt"],
            normalized=normalized,
        )

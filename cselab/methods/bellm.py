"""BeLLM (Li and Li 2024): a decoder whose last layer attends both ways, trained by LoRA."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import torch
from pydantic import Field, field_validator

from cselab.config import shared
from cselab.methods.config import ModelName, Role, Schedule, TrainedConfig
from cselab.methods.differences import Difference
from cselab.methods.registry import register
from cselab.methods.supervised import SupervisedSimCSE
from cselab.methods.terms import Terms
from cselab.models import SentenceEncoder, add_lora, load_decoder
from cselab.models.prompts import prompt_template


@register("bellm")
class BeLLM(SupervisedSimCSE):
    """Supervised SimCSE's loss on the representative word of a prompt, the state of its last token
    (https://arxiv.org/abs/2311.05296, Eq. 6).

    `bidirectional` are the rows of Table 4. Under a causal mask the last token attends to every
    token already, so with `pooling="last_token"` the last layer's mask changes neither embedding
    nor gradient: "last" is "none". Only a pooling that reads other tokens ("mean", what the
    released flag says) can tell them apart. This holds while padding is masked, the default;
    the authors' billm unmasks it too, which is `padding="unmasked"`.

    Rows are triplets in the prompt (`cselab.data.nli.tokenize_triplets`).
    """

    class Config(TrainedConfig):
        """BeLLM's settings; defaults are the paper's but for the model, LLaMA2-7B there."""

        role: ClassVar[Role] = "decoder"
        decoder: ModelName = shared("tiny-llama")
        """A shipped name, a folder, or a name on the hub."""
        bidirectional: Literal["none", "last", "all", "addition"] = "last"
        """BeLLM Table 4."""
        padding: Literal["masked", "unmasked"] = "masked"
        """In bidirectional layers; not in the paper; released: unmasked."""
        pooling: Literal["last_token", "mean"] = "last_token"
        """The paper's; a released flag says mean."""
        prompt: str = "representative"
        """BeLLM section 4: a name or a template of `cselab.models.prompts`."""
        lora_rank: int = Field(32, ge=0)
        """BeLLM section 4; 0 trains all weights."""
        lora_alpha: float = Field(32.0, gt=0)
        """BeLLM section 4."""
        lora_dropout: float = Field(0.1, ge=0, lt=1)
        """BeLLM section 4."""
        dropout: float = Field(0.1, ge=0, lt=1)
        """Of the decoder itself, where all weights are trained."""
        temperature: float = Field(0.05, ge=1e-4, le=1e4)
        """Not in the paper; released 1/20."""
        terms: Terms = {"triplet": 1}
        schedule: Schedule = Schedule(
            steps=12_900,
            batch_size=64,  # 16 to 128 in the paper
            learning_rate=2e-4,  # section 4
            max_length=64,  # released: 60
            eval_every=100,
            decay="linear",
            max_grad_norm=1.0,
        )

        @field_validator("prompt")
        @classmethod
        def _with_a_place(cls, prompt: str) -> str:
            prompt_template(prompt)
            return prompt

    differences = (
        Difference(
            name="LoRA",
            paper="rank 32, α 32",
            released="rank 64, α 128 in stage 1",
            here="paper",
            change={"lora_rank": 64, "lora_alpha": 128.0},
        ),
        Difference(
            name="prompt",
            paper='The representative word for {sentence} is:"',
            released='The representative word for sentence {sentence} is:"',
            here="paper",
            term="triplet",
            change={"prompt": "representative_released"},
        ),
        Difference(
            name="pooling",
            paper="the last token",
            released="the flag says mean, but for an LLM its pooler takes the last token",
            here="paper",
            term="triplet",
            change={"pooling": "mean"},
            labels=("last token", "mean"),
            preset=False,
        ),
        Difference(
            name="the last layer's mask under last-token pooling",
            paper="the causal mask of the last layer is removed; padding is not mentioned",
            released="billm 0.1.3 (the pinned version) unmasks padding too (see the row of padding "
            'in bidirectional layers); in a padded batch "last" then differs from "none", because '
            "the last token also reads the padding",
            here="padding stays masked. A causal mask already lets the last token attend to all "
            'tokens, so "last" and "none" have the same embedding and the same gradient to the '
            "digit; only another pooling, or more bidirectional layers, makes a difference",
            term="triplet",
            change={"bidirectional": "none"},
            labels=("last", "none"),
            preset=False,
        ),
        Difference(
            name="padding in bidirectional layers",
            paper="not mentioned",
            released="billm 0.1.3 replaces the mask of the layer by `zeros_like(causal_mask)`, "
            "which unmasks padding too: the vector of a sentence depends on how long the other "
            "sentences of its batch are",
            here="masked: the vector of a sentence is its own",
            term="triplet",
            change={"padding": "unmasked"},
            labels=("masked", "unmasked"),
        ),
        Difference(
            name="objective",
            paper="InfoNCE on triplets (Eq. 6)",
            released="two stages: first in-batch weight 20 and angle weight 1, batch 256, 4-bit "
            'weights, warm-up 80; then in-batch weight 1 and LoRA rank 32; evaluation appends "."',
            here="paper",
        ),
        Difference(
            name="queries of caption retrieval",
            paper="the first of five captions; all other captions are candidates",
            released="the same",
            here="paper",
        ),
    )

    @classmethod
    def build(cls, config: Config, folders: Sequence[str | Path]) -> "BeLLM":
        lora = config.lora_rank > 0
        backbone, tokenizer = load_decoder(
            folders[0],
            bidirectional=config.bidirectional,
            padding=config.padding,
            dropout=0.0 if lora else config.dropout,
            dtype=torch.bfloat16 if lora and config.schedule.bf16 else torch.float32,
        )
        if lora:
            add_lora(
                backbone,
                rank=config.lora_rank,
                alpha=config.lora_alpha,
                dropout=config.lora_dropout,
            )
        pooling, prompt = config.pooling, config.prompt
        return cls(SentenceEncoder(backbone, tokenizer, pooling=pooling, prompt=prompt), config)

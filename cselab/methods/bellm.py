"""BeLLM (Li and Li 2024): a decoder whose last layer attends both ways, trained by LoRA."""

from typing import ClassVar, Literal

import torch
from pydantic import Field, field_validator

from cselab.config import shared
from cselab.methods import Folders, Schedule, Terms, register
from cselab.methods.baselines.supervised import SupervisedSimCSE
from cselab.methods.nodes import ModelName, Role, TrainedConfig
from cselab.models import SentenceEncoder, add_lora, load_decoder
from cselab.models.prompts import prompt_template


@register("bellm")
class BeLLM(SupervisedSimCSE):
    """Supervised SimCSE's loss on the representative word of a prompt, the state of its last token
    (https://arxiv.org/abs/2311.05296, Eq. 6).

    Under a causal mask the last token attends to every token already, so with
    `pooling="last_token"` and masked padding `bidirectional="last"` is "none": only a pooling that
    reads other tokens ("mean", the released flag) can tell them apart. The authors' billm unmasks
    padding too, which is `padding="unmasked"`.

    Rows are triplets in the prompt (`cselab.data.nli.tokenize_triplets`).
    """

    class Config(TrainedConfig):
        role: ClassVar[Role] = "decoder"
        decoder: ModelName = shared("tiny-llama")
        """A shipped name, a folder, or a name on the hub; the paper has LLaMA2-7B."""
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
        """The decoder's own, where all weights are trained."""
        temperature: float = Field(0.05, ge=1e-4, le=1e4)
        """Not in the paper; released 1/20."""
        terms: Terms = {"triplet": 1}
        schedule: Schedule = Schedule(
            epochs=3,
            batch_size=64,  # 16 to 128 in the paper
            learning_rate=2e-4,  # section 4
            max_length=64,  # released: 60
            eval_every=100,
            max_grad_norm=1.0,
        )

        @field_validator("prompt")
        @classmethod
        def _check_prompt(cls, prompt: str) -> str:
            prompt_template(prompt)
            return prompt

    released = {
        "lora_rank": 64,
        "lora_alpha": 128.0,
        "prompt": "representative_released",
        "padding": "unmasked",
    }

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "BeLLM":
        lora = config.lora_rank > 0
        backbone, tokenizer = load_decoder(
            folders[0],
            bidirectional=config.bidirectional,
            padding=config.padding,
            dropout=0.0 if lora else config.dropout,
            dtype=torch.bfloat16 if lora and config.schedule.bf16 else torch.float32,
        )
        if lora:
            rates = {"alpha": config.lora_alpha, "dropout": config.lora_dropout}
            add_lora(backbone, rank=config.lora_rank, **rates)
        pooling, prompt = config.pooling, config.prompt
        return cls(SentenceEncoder(backbone, tokenizer, pooling=pooling, prompt=prompt), config)

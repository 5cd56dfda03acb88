"""BeLLM (Li and Li 2024): a decoder whose last layer attends both ways, trained by LoRA."""

from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field, field_validator
from torch import Tensor

from cselab.config import shared
from cselab.errors import SettingsError
from cselab.methods import (
    Batch,
    Folders,
    Schedule,
    SentenceOutputs,
    StepContext,
    Terms,
    register,
    term,
)
from cselab.methods.baselines.angle import AnglE, cosent
from cselab.methods.nodes import ModelName, Role, TrainedConfig
from cselab.models import SentenceEncoder, add_lora, load_decoder
from cselab.models.prompts import prompt_template

LayerCount = Annotated[int, Field(ge=1, strict=True)]


@register("bellm")
class BeLLM(AnglE):
    """Supervised SimCSE's loss on the representative word of a prompt, the state of its last token
    (https://arxiv.org/abs/2311.05296, Eq. 6).

    Under a causal mask the last token attends to every token already, so with
    `pooling="last_token"` and masked padding `bidirectional="last"` is "none", and "sum" twice it:
    only a pooling that reads other tokens ("mean", the released flag) can tell them apart. The
    authors' billm unmasks padding too, which is `padding="unmasked"`.

    Rows are triplets in the prompt (`cselab.data.nli.tokenize_triplets`). A model of 7B trains on
    24 GB with LoRA, bfloat16 and a small `schedule.chunk`; `gradient_checkpointing` and `four_bit`
    take less (`cselab.models.decoder_memory`).
    """

    class Config(TrainedConfig):
        role: ClassVar[Role] = "decoder"
        decoder: ModelName = shared("meta-llama/Llama-2-7b-hf")
        """BeLLM section 4: LLaMA2-7B; a shipped name, a folder, or a name on the hub."""
        bidirectional: (
            Literal["none", "last", "all", "addition", "sum"]
            | Annotated[int, Field(ge=1, strict=True)]
        ) = "last"
        """BeLLM Table 4; a number k is the last k layers, "sum" Eq. 5 as it is written."""
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
        gradient_checkpointing: bool = shared(False)
        """Compute each layer again in the backward pass, in place of keeping its activations."""
        four_bit: bool = shared(False)
        """Frozen weights in 4 bits, on CUDA, with LoRA; not in the paper; released: stage 1."""
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
        "lora_rank": lambda config: config.lora_rank if config.starts else 64,
        "lora_alpha": lambda config: config.lora_alpha if config.starts else 128.0,
        "prompt": "representative_released",
        "padding": "unmasked",
    }

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "BeLLM":
        lora = config.lora_rank > 0
        if config.four_bit and not lora:
            raise SettingsError("four_bit: weights in 4 bits cannot be trained; give a lora_rank")
        backbone, tokenizer = load_decoder(
            folders[0],
            bidirectional=config.bidirectional,
            padding=config.padding,
            dropout=0.0 if lora else config.dropout,
            dtype=torch.bfloat16 if lora and config.schedule.bf16 else torch.float32,
            four_bit=config.four_bit,
        )
        if lora:
            rates = {"alpha": config.lora_alpha, "dropout": config.lora_dropout}
            add_lora(backbone, rank=config.lora_rank, **rates)
        if config.gradient_checkpointing:
            old = backbone.gradient_checkpointing_enable  # before transformers 5.23
            getattr(backbone, "activation_checkpointing_enable", old)({"use_reentrant": False})
        pooling, prompt = config.pooling, config.prompt
        return cls(SentenceEncoder(backbone, tokenizer, pooling=pooling, prompt=prompt), config)


@register("bellm_two_stages")
class BeLLMTwoStages(BeLLM):
    """BeLLM's released objective: after a stage with a heavier in-batch term and AnglE's angle, in
    4 bits, a second stage trains new adapters on the merged ones of the first.

    The paper (https://arxiv.org/abs/2311.05296) has one stage, that of `bellm`. The released second
    stage reads mined negatives, which are not released; here both read the same triplets. Where the
    second stage is in 4 bits too, merging rounds the first stage's weights.
    """

    class Config(BeLLM.Config):
        towers: tuple[BeLLM.Config] = (
            BeLLM.Config(
                terms={"triplet": 20, "angle": 1},
                lora_rank=64,
                lora_alpha=128.0,
                four_bit=True,
                schedule=BeLLM.Config().schedule.model_copy(
                    update={"batch_size": 256, "warmup": 80, "max_length": 60}
                ),
            ),
        )
        """Released: stage 1."""


@register("bellm_csts")
class BeLLMConditional(BeLLM):
    """BeLLM trained on C-STS, with the condition in the prompt (https://arxiv.org/abs/2311.05296,
    Table 2): pairs in the order of their ratings, each under its condition.

    The paper names neither loss nor schedule of this training; AnglE's order takes graded ratings.
    A tenth of the training pairs picks the checkpoint: the test's ratings are hidden, and those of
    the validation pairs are reported (measure "csts").

    Rows are pairs with a rating, `target` (`cselab.data.csts.tokenize_csts`); `prompt` is what the
    encoder puts around other sentences.
    """

    class Config(BeLLM.Config):
        terms: Terms = {"ordered": 1}

    views = 2
    reads = "csts"
    keeps_apart = False  # an order needs no distance
    released: ClassVar = {}  # this training is not in the released code
    own_terms: ClassVar = {}  # those of triplets

    def forward(self, batch: Batch) -> SentenceOutputs:
        """Add the ratings, (1, N, 1)."""
        return replace(super().forward(batch), extra=batch["target"][None])

    @term(reads_text=True)
    def ordered(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """Pairs that are rated higher are more alike (CoSENT, https://kexue.fm/archives/8847)."""
        cosines = torch.cosine_similarity(*outputs.sentence, dim=-1)
        return cosent(cosines, outputs.extra[0, :, 0], temperature=self.settings.temperature)

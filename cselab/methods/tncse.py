"""TNCSE: two towers that agree in the direction of [CLS] (ICNCE) and in pooled norms (ICTN)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn
from transformers import PreTrainedConfig

from cselab.errors import SettingsError
from cselab.losses import icnce, ictm
from cselab.methods import AnyMethod, Schedule, StepContext, TermConfig, Terms, register, term
from cselab.methods.base import Batch, Folders, Method, Outputs, SentenceOutputs
from cselab.methods.nodes import (
    Augmented,
    BackboneConfig,
    Role,
    TrainedConfig,
    TwoViews,
    WithPooler,
)
from cselab.methods.simcse import SimCSE, has_head, mlp_head, twin_towers
from cselab.methods.terms import Space
from cselab.models import (
    SentenceEncoder,
    TwinEncoder,
    load_backbone,
    load_tokenizer,
    remove_layer_norms,
)

Views = Float[Tensor, "2 N d"]
RELEASED_LOSSES = {
    "terms.nce.layout": "all",
    "terms.icnce.variant": "released",
    "terms.ictm.variant": "released",
}
"""Both repositories' losses."""


@dataclass(frozen=True)
class TwinOutputs(Outputs):
    """Vectors of both towers: [CLS], the pooler's output, the cross stream's [CLS] and the head's
    output, (2, N, d), and the first view's texts without dropout, (1, N, d)."""

    cls_i: Tensor
    cls_ii: Tensor
    pooled_i: Tensor | None = None
    pooled_ii: Tensor | None = None
    cross_i: Tensor | None = None
    cross_ii: Tensor | None = None
    clean_i: Tensor | None = None
    clean_ii: Tensor | None = None
    head_i: Tensor | None = None
    head_ii: Tensor | None = None

    @property
    def own(self) -> tuple[Tensor, Tensor]:
        """What the terms inside each tower read: [CLS], through the head if there is one."""
        if self.head_i is None or self.head_ii is None:
            return self.cls_i, self.cls_ii
        return self.head_i, self.head_ii

    def with_clean(self, clean: "TwinOutputs") -> "TwinOutputs":
        """The same with the vectors of a pass without dropout."""
        clean_i, clean_ii = clean.own
        return replace(self, clean_i=clean_i, clean_ii=clean_ii)


class ICNCE(TermConfig):
    """InfoNCE across the towers."""

    variant: Literal["paper", "released"] = "paper"
    """"released": 2N x 2N candidates, the same view in the other tower masked out."""


class ICTM(TermConfig):
    """The constraint of norms; ICTN in TNCSE, ICTM in JTCSE."""

    variant: Literal["paper", "released"] = "paper"
    """"released": ratio / 2, view a against view b, a negative similarity replaced by 1e-4."""
    measured_on: Literal["pooler", "cls"] = "pooler"
    """The papers': the pooler's output; the last [CLS] in TNCSE Figure 5 and JTCSE Figure 8."""


@register("tncse")
class TNCSE(Method):
    """`L = sum_i L_NCE(i) + L_ICNCE + L_ICTN` over a twin (https://arxiv.org/abs/2503.12739, last
    equation of its method section)."""

    class Config(TrainedConfig, Augmented, WithPooler):
        role: ClassVar[Role] = "twin"
        carried: ClassVar[tuple[str, ...]] = ("seed", "schedule", "towers")
        towers: tuple[AnyMethod, AnyMethod] = Field(default_factory=twin_towers)
        """The start of stage 2: trained once, shared by all that hold equal ones."""
        dropout: float = Field(0.1, ge=0, lt=1)
        """Not stated, so BERT's."""
        temperature: float = Field(0.05, ge=1e-4, le=1e4)
        """Stage 2's; `towers.temperature` is stage 1's."""
        head: Literal["none", "mlp_train_only", "kept"] = "none"
        """Of the terms inside a tower (`nce`): a new one, or "kept", the towers' own of stage 1;
        the papers' stage 2 reads [CLS] itself."""
        layer_norms_removed: int = Field(0, ge=0)
        """From the last layers: 0 to 6 in TNCSE Figure 5 and JTCSE Figure 8."""
        terms: Terms = {"nce": 1, "icnce": 1, "ictm": 1}
        schedule: Schedule = Schedule(
            batch_size=64,  # TNCSE, JTCSE: BERT 64; one epoch, without round trips
            learning_rate=1e-6,  # TNCSE's table; JTCSE "as TNCSE"
            max_length=64,  # released JTCSE
            eval_every=100,  # released JTCSE
            decay="constant",  # released TNCSE and JTCSE, as the next two
            weight_decay=0.01,
            max_grad_norm=0.0,
        )

        @property
        def reads_pooler(self) -> bool:
            """Whether a term compares the poolers' outputs."""
            return "ictm" in self.terms and self.terms["ictm"].measured_on == "pooler"

    tower_names = ("i", "ii")
    space_names = ("tower I", "tower II")
    paper_row = "TNCSE"
    released = {
        **RELEASED_LOSSES,
        "dropout": {"bert": 0.00025, "roberta": 0.0175},
        "schedule.batch_size": {"roberta": 256},
    }

    def __init__(self, encoder: TwinEncoder, config: Config):
        super().__init__(encoder, config)
        self.heads = nn.ModuleList()
        if config.head == "kept" and not all(map(has_head, config.towers)):
            raise SettingsError(
                "head='kept' goes on with the heads of the towers, and these train without; set "
                "towers.head=mlp_train_only"
            )
        if config.head != "none":
            width = encoder.backbones[0].config.hidden_size
            self.heads.extend(mlp_head(width) for _ in self.tower_names)

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "TNCSE":
        pooler = config.required_pooler if config.reads_pooler else "if_present"
        tower_i, tower_ii = (
            load_backbone(folder, dropout=config.dropout, pooler=pooler) for folder in folders
        )
        for tower in (tower_i, tower_ii):
            remove_layer_norms(tower, config.layer_norms_removed)
        crossing = cls.cross_attention(config, tower_i.config)
        tokenizer = load_tokenizer(folders[0])
        return cls(TwinEncoder(tower_i, tower_ii, tokenizer=tokenizer, **crossing), config)

    @classmethod
    def cross_attention(cls, config: Any, shape: PreTrainedConfig) -> dict[str, Any]:
        """The twin's cross-attention options: TNCSE has no cross-attention layers."""
        return {}

    def rows(self, batch: Batch) -> TwinOutputs:
        read = self.encoder(batch["input_ids"], batch["attention_mask"])
        outputs = TwinOutputs(read.cls_i, read.cls_ii)
        if self.heads:
            head_i, head_ii = self.heads
            outputs = replace(outputs, head_i=head_i(read.cls_i), head_ii=head_ii(read.cls_ii))
        if self.settings.reads_pooler:
            outputs = replace(outputs, pooled_i=read.pooled_i, pooled_ii=read.pooled_ii)
        if "icnce" in self.terms:
            outputs = replace(outputs, cross_i=read.cross_i, cross_ii=read.cross_ii)
        return outputs

    def spaces(self, outputs: TwinOutputs, step: StepContext) -> list[Space]:
        pairs = zip(outputs.own, (outputs.clean_i, outputs.clean_ii), strict=True)
        temperature = self.settings.temperature
        return [Space(x, None if c is None else c[0], step, temperature) for x, c in pairs]

    @classmethod
    def placed(cls, points: Sequence[Views]) -> TwinOutputs:
        i, ii = points
        clean = {"clean_i": i.mean(0, keepdim=True), "clean_ii": ii.mean(0, keepdim=True)}
        return TwinOutputs(i, ii, pooled_i=i, pooled_ii=ii, **clean)

    @term(ICNCE, script="icnce")
    def icnce(self, outputs: TwinOutputs, step: StepContext) -> Float[Tensor, ""]:
        """A sentence's vectors of the two towers are turned towards each other.

        `−1/N Σᵢ log( exp(cos(xᵢ, yᵢ)/τ) / Σⱼ exp(cos(xᵢ, yⱼ)/τ) )`, x of tower I, y of tower II
        """
        return self.across(outputs.cls_i, outputs.cls_ii, step)

    @term(ICTM, script="ictm")
    def ictm(self, outputs: TwinOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The two towers' vectors of a sentence get one direction; the pull on their lengths is
        strong only while the directions differ.

        `1/N Σᵢ −log cos(xᵢ, yᵢ) · ( ‖p − q‖ / (‖p‖ + ‖q‖) summed over the crossed views )` (TNCSE's
        tensor-norm, JTCSE's tensor-modulus constraint)
        """
        norms = directions = (outputs.cls_i, outputs.cls_ii)
        if self.settings.reads_pooler:
            norms = (outputs.pooled_i, outputs.pooled_ii)
        return ictm(*directions, *norms, variant=self.terms["ictm"].variant)

    def across(self, anchors: Views, candidates: Views, step: StepContext) -> Float[Tensor, ""]:
        """ICNCE of two streams, in the variant of the configuration."""
        temperature, variant = self.settings.temperature, self.terms["icnce"].variant
        return icnce(anchors, candidates, temperature=temperature, variant=variant, ids=step.ids)


class Modulus(TermConfig):
    """The views that the norm constraint compares."""

    variant: Literal["paper", "released"] = "paper"
    """"paper": the same view of both sides. "released": view a of one with view b of the other."""


@register("tncse_single")
class SingleTowerTNCSE(Method):
    """SimCSE plus `L_TN` between the two views (https://arxiv.org/abs/2503.12739, Table 5):
    `-log sim(h, h+) * ||p - p+|| / (||p|| + ||p+||)`, p the pooler's output."""

    class Config(BackboneConfig, TwoViews, WithPooler):
        temperature: float = Field(0.05, ge=1e-4, le=1e4)
        terms: Terms = {"nce": 1, "modulus": 1}
        schedule: Schedule = SimCSE.Config().schedule

    @classmethod
    def build(cls, config: Config, folders: Folders) -> "SingleTowerTNCSE":
        backbone = load_backbone(folders[0], dropout=config.dropout, pooler=config.required_pooler)
        return cls(SentenceEncoder(backbone, load_tokenizer(folders[0]), pooling="cls"), config)

    def rows(self, batch: Batch) -> SentenceOutputs:
        """[CLS] and the pooler's output, (2, N, d)."""
        cls = self.encoder.embed(batch)
        pooled = self.encoder.backbone.pooler(cls[:, None]) if "modulus" in self.terms else None
        return SentenceOutputs(cls, extra=pooled)

    @classmethod
    def placed(cls, points: Sequence[Float[Tensor, "2 N d"]]) -> SentenceOutputs:
        return replace(super().placed(points), extra=points[0])

    @term(Modulus, script="modulus")
    def modulus(self, outputs: SentenceOutputs, step: StepContext) -> Float[Tensor, ""]:
        """The two views of a sentence get one direction; the pull on their lengths is strong only
        while the directions differ.

        `1/N Σᵢ −log cos(aᵢ, bᵢ) · ‖aᵢ − bᵢ‖ / (‖aᵢ‖ + ‖bᵢ‖)` (TNCSE Table 5)

        It is the twin's term with the two views as the two towers, which counts each pair twice.
        """
        h, p = outputs.sentence, outputs.extra
        if self.terms["modulus"].variant == "released":
            return ictm(h, h, p, p, variant="released") / 2
        return ictm(h, h.flip(0), p, p) / 2

"""Settings: one frozen object for everything a run depends on. A profile fills it, parameters override it.

Profiles
    tiny   the default workbook: embedded data, the small backbone, minutes on a CPU
    small  real sentences and the seven STS tests, the small backbone; some CPU hours or minutes on a GPU
    paper  BERT-base on one million Wikipedia sentences with the papers' hyperparameters; a GPU
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer, model_validator

from cselab.errors import SettingsError, suggest

RELEASED: dict[str, dict[str, Any]] = {
    "off_dropout": {"negative_weight": 1.0, "positive_scale": 0.9},  # ImSimCSE: pos_ratio in the place of m
    "noise": {"noise_std": 0.1},  # ImSimCSE's noise study: and on one view
    "lora": {"lora_rank": 64, "lora_alpha": 128.0},  # BeLLM, stage 1
    "prompt": {"prompt": "representative_released"},  # BeLLM
}
"""Rows of the ledger that are other values of settings, for every method alike."""
OF_ONE_REPOSITORY = ("stage2_dropout", "stage2_rate")
"""Rows that one repository has alone: `TNCSE.released_dropout` and `JTCSE.released_rate`."""
LEDGER_ROWS = frozenset({"info_nce_layout", "icnce_candidates", "modulus", *OF_ONE_REPOSITORY, *RELEASED})
"""Rows of the ledger (differences between papers and released code) that a switch can turn on."""


@dataclass(frozen=True)
class Schedule:
    """How one stage is trained: what `cselab.training.fit` needs to know and nothing else."""

    steps: int
    batch_size: int
    learning_rate: float
    max_length: int
    eval_every: int
    decay: Literal["linear", "constant"] = "linear"
    weight_decay: float = 0.0
    max_grad_norm: float = 0.0  # 0: no clipping
    bf16: bool = False
    compile: bool = False
    chunk: int = 0  # sentences whose graph is kept at a time, by cached gradients; 0: the whole batch

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Settings(BaseModel):
    """Every knob of a run. Build it with `Settings.of("tiny", seed=1, ...)`; it is frozen and hashable by value."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    profile: Literal["tiny", "small", "paper"]

    # Where things are.
    data_dir: Path | None = None  # a folder laid out like data/README.md says; CSELAB_DATA if unset
    hub: bool = False  # what a folder lacks comes from the Hugging Face hub, or offline from its cache
    outputs: Path = Path("outputs")

    # The machine.
    seed: int = Field(42, ge=0, lt=2**31)  # TNCSE supplement, App. I: seed 42; twice it must be a seed of numpy's
    seeds: int = Field(1, ge=1)  # how many seeds a comparison of notebook 07 trains: seed, seed + 1, …
    device: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    bf16: bool = False  # autocast matrix products to bfloat16
    compile: bool = False  # torch.compile; needs a C++ compiler on a CPU
    chunk: int = Field(0, ge=0)  # sentences whose graph is kept at a time, by cached gradients; 0: the whole batch

    # Data.
    corpus: tuple[str, ...] = ()  # names in data_dir/corpus, or paths; empty: the source's default
    sentences: int = Field(1_000_000, ge=2)  # SimCSE: one million Wikipedia sentences
    tasks: tuple[str, ...] = ()  # test tasks; empty: the seven STS tasks if a folder or hub has them, else World
    dev_task: str = ""  # empty: STSBenchmark dev with real data, World dev otherwise
    dev_pairs: int | None = Field(None, ge=10)  # at most so many of its pairs; None: all
    world_pairs: int | None = Field(None, ge=10)  # at most so many of the world's test pairs; others are never cut
    rtt_mode: Literal["append", "replace", "pair", "none", "twice"] = (
        "append"  # METHODS 3: the papers' wording is ambiguous;
    )
    # "none" and "twice" are the controls: a tower on the text alone, and on as many rows as "append" has
    translator: str = (
        "lexical"  # "opus-mt", "multilingual", a folder, or a .tsv of prepared trips; papers: Google Translate
    )
    beams: int = Field(1, ge=1)  # of the translator's search; 1 is greedy
    translation_temperature: float = Field(0.0, ge=0)  # above 0 its words are drawn
    pivot_i: str = "fr"  # TNCSE Table: BERT I en-fr-en
    pivot_ii: str = "ru"  # TNCSE Table: BERT II en-ru-en
    pivots: tuple[str, ...] = ("fr", "ru", "nl", "zh")  # EDFSE's members, one tower a pivot; the papers have six

    # Model.
    backbone: str = "tiny-bert"
    dropout: float = Field(0.1, ge=0, lt=1)  # BERT default
    stage2_dropout: float | None = Field(
        None, ge=0, lt=1
    )  # None: the same; released TNCSE 0.00025 (BERT), 0.0175 (RoBERTa)
    pooling: Literal["cls", "mean", "first_last", "last_two", "pooler"] = "cls"  # SimCSE and the twins: [CLS]
    pooler: Literal["trained", "fresh"] = (
        "trained"  # "fresh": a new one where the checkpoint has none (the hub's RoBERTa)
    )
    head: Literal["none", "mlp_train_only"] = "none"  # which one TNCSE/JTCSE's stage 1 used is not released

    # A decoder, for BeLLM.
    decoder: str = "tiny-llama"
    bidirectional: Literal["none", "last", "all", "addition"] = "last"  # BeLLM Table 4
    decoder_pooling: Literal["last_token", "mean"] = "last_token"  # the paper's; a released flag says mean
    prompt: str = "representative"  # BeLLM section 4; a name or a template of cselab.prompts
    lora_rank: int = Field(32, ge=0)  # BeLLM section 4; 0 trains all weights; released stage 1: 64
    lora_alpha: float = Field(32.0, gt=0)  # BeLLM section 4; released stage 1: 128
    lora_dropout: float = Field(0.1, ge=0, lt=1)  # BeLLM section 4

    # Losses.
    temperature: float = Field(0.05, ge=1e-4, le=1e4)  # SimCSE Table D.1; released TNCSE/JTCSE the same
    terms: tuple[
        str, ...
    ] = ()  # loss terms, "name" or "name:weight"; empty: the method's own (JTCSE Eq. 15; Table X drops some)
    augment: tuple[
        str, ...
    ] = ()  # what changes each view's text, a name of cselab.data.augment a view; empty: the method's own
    knobs: tuple[str, ...] = ()  # numbers of a method's or a term's own, "name:value"; what there is stands in its file
    negative_weight: float = Field(0.9, gt=0)  # ImSimCSE Eq. 3: m = 0.9
    positive_scale: float = Field(1.0, gt=0)  # released ImSimCSE: pos_ratio, 0.9 in one script, 1 in the combined one
    dcl: Literal["paper", "released"] = "released"  # METHODS 5: what weight 0.1 and temperature 5 belong to
    dcl_temperature: float = Field(5.0, ge=1e-4, le=1e4)  # ImSimCSE: 5
    noise: Literal["more", "less"] = "less"  # ImSimCSE Table 1: +Noise adds Gaussian noise, -Noise averages passes
    noise_on: Literal["positives", "negatives"] = "negatives"  # ImSimCSE Table 1
    noise_std: float = Field(0.1**0.5, gt=0)  # ImSimCSE section 3.1: variance 0.1 on both views; released 0.1 on one
    noise_passes: int = Field(10, ge=1)  # ImSimCSE section 3.1: K = 10
    artificial_rows: int = Field(0, ge=0)  # Gaussian rows in Barlow Twins' correlation (ImSimCSE Table 2: 0 to 704)
    released_rows: frozenset[str] = frozenset()  # ledger rows that follow the released code, not the paper
    caels: int = Field(3, ge=0)  # JTCSE Table IX: 6 of BERT-base's 12 layers is best, so every 2nd; 3 of 6 here
    layer_norms_removed: int = Field(
        0, ge=0
    )  # TNCSE Figure 5, JTCSE Figure 8: of the last 0 to 6 layers of a twin's towers
    modulus_on: Literal["pooler", "cls"] = (
        "pooler"  # what the modulus loss reads; those figures: the last layer's [CLS]
    )
    cross_stream: Literal["parallel", "last_only", "fused"] = (
        "parallel"  # METHODS 4: the released layer code is missing
    )

    # Stage 1: each tower alone by SimCSE.
    stage1_steps: int = Field(..., ge=1)
    stage1_batch_size: int = Field(64, ge=2)  # SimCSE Table D.1, BERT-base
    stage1_learning_rate_i: float = Field(1.5e-5, gt=0)  # TNCSE Table: BERT I
    stage1_learning_rate_ii: float = Field(2e-5, gt=0)  # TNCSE Table: BERT II
    stage1_max_length: int = Field(32, ge=4)  # SimCSE: 32
    stage1_eval_every: int = Field(100, ge=1)  # TNCSE supplement: STS-B dev every 100 steps

    # One tower alone by its own paper (SimCSE, ImSimCSE, the baselines); None: as stage 1's tower I.
    single_steps: int | None = Field(None, ge=1)
    single_learning_rate: float | None = Field(None, gt=0)
    single_eval_every: int | None = Field(None, ge=1)

    # Stage 2: the two towers together.
    stage2_steps: int = Field(..., ge=1)
    stage2_batch_size: int = Field(64, ge=2)  # TNCSE, JTCSE: BERT 64 (RoBERTa released 256)
    stage2_learning_rate: float = Field(1e-6, gt=0)  # TNCSE Table; JTCSE "as TNCSE"; released JTCSE 1.3e-6
    stage2_max_length: int = Field(64, ge=4)  # released JTCSE: 64
    stage2_eval_every: int = Field(100, ge=1)  # released JTCSE: every 100 steps

    # Triplets: supervised SimCSE, BeLLM.
    nli: tuple[str, ...] = ()  # names in data_dir/nli; empty: the source's default
    triplets: int = Field(20_000, ge=2)  # at most so many
    supervised_steps: int = Field(..., ge=1)
    supervised_batch_size: int = Field(64, ge=2)  # BeLLM: 16 to 128; SimCSE: 512
    supervised_learning_rate: float = Field(5e-5, gt=0)  # SimCSE Table D.1, supervised BERT-base
    bellm_learning_rate: float = Field(2e-4, gt=0)  # BeLLM section 4, LoRA
    supervised_max_length: int = Field(64, ge=4)  # released BeLLM: 60
    supervised_eval_every: int = Field(100, ge=1)

    # D: an ensemble into one fresh tower.
    distil_steps: int = Field(..., ge=1)
    distil_learning_rate: float = Field(1e-5, gt=0)  # TNCSE Table: +D 1e-5, +UC D 1.5e-5

    @field_serializer("released_rows")
    def _in_order(self, rows: frozenset[str]) -> list[str]:
        """A set's order differs from process to process; a hash of the settings must not."""
        return sorted(rows)

    @model_validator(mode="after")
    def _seeds_in_range(self) -> "Settings":
        if self.seed + self.seeds > 2**31:
            last = self.seed + self.seeds - 1
            raise ValueError(
                f"seeds from {self.seed} to {last} leave the range below {2**31}; choose a smaller seed or fewer seeds"
            )
        return self

    @model_validator(mode="after")
    def _known_rows(self) -> "Settings":
        for row in self.released_rows - LEDGER_ROWS:
            raise ValueError(f"unknown ledger row {row!r}; {suggest(row, LEDGER_ROWS)}")
        return self

    @classmethod
    def of(cls, profile: str = "tiny", **overrides: Any) -> "Settings":
        """The profile's values, then those of `released_rows`, with `overrides` on top; None means "as the profile has it".

        Raises SettingsError, naming the nearest valid name, for an unknown profile or key, and for a bad value.
        """
        if profile not in PROFILES:
            raise SettingsError(f"unknown profile {profile!r}; {suggest(profile, PROFILES)}")
        given = {key: value for key, value in overrides.items() if value is not None}
        for key in given:
            if key not in cls.model_fields:
                raise SettingsError(f"unknown setting {key!r}; {suggest(key, cls.model_fields)}")
        for key in (
            "corpus",
            "nli",
            "tasks",
            "terms",
            "augment",
            "knobs",
            "released_rows",
            "pivots",
        ):  # one name, or several with commas, from a command line
            if isinstance(given.get(key), str):
                given[key] = tuple(part.strip() for part in given[key].split(",") if part.strip())
        if "all" in given.get("released_rows", ()):
            given["released_rows"] = LEDGER_ROWS
        values = {**PROFILES[profile], **given}
        for row in sorted(values.get("released_rows", ())):
            for key, released in RELEASED.get(row, {}).items():
                if key not in given:
                    values[key] = released
        try:
            return cls(profile=profile, **values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"][:1]) or "settings"
            value = f" (got {first['input']!r})" if first["loc"] else ""
            if first["type"] == "literal_error":
                valid = map(str, get_args(cls.model_fields[where].annotation))
                nearest = suggest(str(first["input"]), valid).partition("valid:")[0].strip()
                value += f"; {nearest}" if nearest else ""
            raise SettingsError(f"{where}: {first['msg'].removeprefix('Value error, ')}{value}") from None

    def changed(self, **overrides: Any) -> "Settings":
        """The same settings but `overrides`; None is the profile's value. What the profile says counts as said by nobody."""
        usual = PROFILES[self.profile]
        said = self.model_dump(exclude={"profile"}, exclude_unset=True)
        given = {key: value for key, value in said.items() if key not in usual or value != usual[key]}
        return Settings.of(self.profile, **{**given, **overrides})

    @property
    def required_pooler(self) -> Literal["required", "fresh"]:
        """How `load_backbone` gets the pooler of a method that reads it."""
        return "fresh" if self.pooler == "fresh" else "required"

    def _speed(self) -> dict[str, Any]:
        return {"bf16": self.bf16, "compile": self.compile, "chunk": self.chunk}

    def stage1(self, tower: Literal["i", "ii"]) -> Schedule:
        """SimCSE of one tower: linear decay, no weight decay, clipping at 1 (SimCSE uses the Trainer's defaults)."""
        rate = self.stage1_learning_rate_i if tower == "i" else self.stage1_learning_rate_ii
        return Schedule(
            self.stage1_steps, self.stage1_batch_size, rate, self.stage1_max_length, self.stage1_eval_every,
            decay="linear", weight_decay=0.0, max_grad_norm=1.0, **self._speed(),
        )  # fmt: skip

    def single(self) -> Schedule:
        """A method of one tower by itself: tower I's schedule but for what is set."""
        given = {
            "steps": self.single_steps, "learning_rate": self.single_learning_rate, "eval_every": self.single_eval_every,
        }  # fmt: skip
        return replace(self.stage1("i"), **{name: value for name, value in given.items() if value is not None})

    def stage2(self) -> Schedule:
        """The twin: constant rate, weight decay 0.01 on everything, no clipping (released TNCSE and JTCSE)."""
        return Schedule(
            self.stage2_steps, self.stage2_batch_size, self.stage2_learning_rate, self.stage2_max_length,
            self.stage2_eval_every, decay="constant", weight_decay=0.01, max_grad_norm=0.0, **self._speed(),
        )  # fmt: skip

    def supervised(self, method: Literal["simcse_supervised", "bellm"]) -> Schedule:
        """Triplets: linear decay, as SimCSE and BeLLM have it."""
        rate = self.bellm_learning_rate if method == "bellm" else self.supervised_learning_rate
        return Schedule(
            self.supervised_steps, self.supervised_batch_size, rate, self.supervised_max_length, self.supervised_eval_every,
            decay="linear", weight_decay=0.0, max_grad_norm=1.0, **self._speed(),
        )  # fmt: skip

    def distillation(self) -> Schedule:
        """A fresh tower on a teacher's vectors: stage 1's batches, with the twin's optimiser."""
        return Schedule(
            self.distil_steps, self.stage1_batch_size, self.distil_learning_rate, self.stage1_max_length,
            self.stage1_eval_every, decay="constant", weight_decay=0.01, max_grad_norm=0.0, **self._speed(),
        )  # fmt: skip


PROFILES: dict[str, dict[str, Any]] = {
    # Rates for the small backbone are ours, chosen on dev splits at seed 42. `tiny` is for speed, and so short a training must be gentle:
    # from a dev score of 66.6, 20 steps of SimCSE reach 66.7 in each tower at these rates and 66.8 in their sum, 10 of JTCSE 67.4.
    # What longer ones do in the world: with round trips as the other view, at 1e-3, 200 steps gain +1 to +1.6.
    "tiny": dict(
        sentences=2_000, dev_pairs=150, world_pairs=500, rtt_mode="pair",
        stage1_steps=16, stage1_learning_rate_i=2e-4, stage1_learning_rate_ii=2.7e-4, stage1_eval_every=8,
        stage2_steps=8, stage2_batch_size=32, stage2_learning_rate=1e-4, stage2_max_length=32, stage2_eval_every=4,
        distil_steps=16, distil_learning_rate=1e-3,
        triplets=2_000, supervised_steps=8, supervised_batch_size=32, supervised_learning_rate=3e-4,
        bellm_learning_rate=2e-3, supervised_eval_every=4,
    ),
    "small": dict(
        sentences=100_000, stage1_steps=1500, stage1_batch_size=128, stage1_learning_rate_i=3e-5,
        stage1_learning_rate_ii=4e-5, stage2_steps=780, stage2_batch_size=128, stage2_learning_rate=3e-6,
        stage2_max_length=32, distil_steps=1500, distil_learning_rate=1e-4, supervised_steps=600,
        supervised_learning_rate=3e-4, bellm_learning_rate=3e-3,
    ),
    "paper": dict(
        hub=True, backbone="google-bert/bert-base-uncased", caels=6, bf16=True, translator="opus-mt",
        pivots=("fr", "ru", "nl", "zh", "de", "es"),
        stage1_steps=31_000,  # one epoch of a million sentences and their round trips at batch 64 (SimCSE: 1 epoch)
        single_steps=15_625, single_learning_rate=3e-5, single_eval_every=125,  # SimCSE: one epoch of the text alone
        distil_steps=15_600, triplets=275_601, supervised_steps=12_900,  # three epochs of SimCSE's NLI triplets at batch 64
        stage2_steps=15_600,  # one epoch of a million sentences at batch 64; JTCSE trains stage 2 without round trips
    ),
}  # fmt: skip

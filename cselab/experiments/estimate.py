"""Work and disk of runs, from the shapes of their models and their schedules."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from transformers import AutoConfig, BertConfig, LlamaConfig, RobertaConfig

from cselab.data.csts import COUNTS
from cselab.data.hub import model_folder
from cselab.errors import CselabError
from cselab.evaluation.cost import inference_cost, twin_training_cost
from cselab.experiments.grid import Run
from cselab.experiments.presets import family
from cselab.methods import MethodConfig, registered
from cselab.methods.nodes import TrainedConfig
from cselab.models import decoder_memory

FLOP_PER_SECOND = 150e12
"""Assumed, not measured: a large GPU in bfloat16, at a sixth of an H100's peak."""
SENTENCES = 1_000_000
"""Of a text without a limit, as Wiki1M."""
SHAPES = {
    "bert": {},
    "bert-large": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
    "roberta": {"vocab_size": 50_265, "max_position_embeddings": 514},
}
"""What public models have besides the defaults of their configuration, by `presets.family`."""


class Estimate(NamedTuple):
    """What runs need, each training counted once.

    Attributes:
        flop: Of forward and backward passes at full length; batches are padded to their longest
            sentence only, so the work is a third to a half of it. Evaluations, round trips and
            further passes of single methods are left out.
        kept: Bytes of the trained encoders, and of the teachers' vectors of students.
        working: Bytes of the checkpoints of the largest training while it runs.
    """

    trainings: int
    flop: float
    kept: int
    working: int

    def __str__(self) -> str:
        hours = self.flop / FLOP_PER_SECOND / 3600
        return (
            f"{self.trainings} trainings: {self.flop / 1e15:,.0f} PFLOP, {hours:.1f} hours at "
            f"{FLOP_PER_SECOND / 1e12:.0f} TFLOP/s (assumed; without round trips and evaluations); "
            f"{self.kept / 1e9:.1f} GB kept, {self.working / 1e9:.1f} GB of checkpoints while the "
            "largest trains"
        )


def estimate(runs: Sequence[Run]) -> Estimate:
    """What the trainings of `runs` need; a training that several share counts once."""
    nodes: dict[str, tuple[TrainedConfig, Any]] = {}
    for run in runs:
        if not run.notebook:
            for node in _trained(run.config.method):
                text = (run.config.data.corpus, run.config.data.sentences)
                nodes[f"{text} {node.model_dump_json()}"] = (node, run.config.data)
    weights = [_trained_weights(node) for node, _ in nodes.values()]
    return Estimate(
        trainings=len(nodes),
        flop=sum(_flop(node, data) for node, data in nodes.values()),
        kept=4 * sum(weights) + sum(_targets(node, data) for node, data in nodes.values()),
        # two checkpoints of weights, best weights and Adam's moments
        working=2 * 16 * max(weights, default=0),
    )


def _trained(node: MethodConfig) -> Iterator[TrainedConfig]:
    for part in node.parts:
        yield from _trained(part)
    if isinstance(node, TrainedConfig):
        yield node


def _flop(node: TrainedConfig, data: Any) -> float:
    kind, plan, shape = registered(node.method), node.schedule, _shape(node)
    rows = data.sentences or SENTENCES
    if kind.reads != "text":
        rows = data.triplets if kind.reads == "triplets" else COUNTS["train"]
    if node.trips and node.trips.mode in ("append", "twice"):
        rows *= 2
    if len(kind.tower_names) == 1:
        gmacs = inference_cost(shape, length=plan.max_length).with_attention
    else:
        layers = kind.cross_attention(node, shape).get("cael", ())
        gmacs = twin_training_cost(shape, length=plan.max_length)(layers, "parallel").with_attention
    passes = 2 if getattr(node, "lora_rank", 0) else 3  # no gradient of frozen weights
    texts = plan.steps_for(rows) * plan.batch_size * kind.views
    return texts * passes * 2e9 * gmacs


def _targets(node: TrainedConfig, data: Any) -> int:
    """Bytes of the teachers' vectors of all sentences."""
    widths = [_shape(part).hidden_size for part in node.parts if part not in node.starts]
    return 4 * sum(widths) * (data.sentences or SENTENCES)


def _trained_weights(node: TrainedConfig) -> int:
    """Number of weights that a training changes and keeps."""
    memory = decoder_memory(_shape(node), rank=getattr(node, "lora_rank", 0))
    return len(registered(node.method).tower_names) * memory["gradients"] // 4


def _shape(node: MethodConfig) -> Any:
    """The configuration of a node's model: a local one's own, else that of its family."""
    while not node.pretrained_model:
        node = node.parts[0]
    try:
        return AutoConfig.from_pretrained(model_folder(node.pretrained_model))
    except (CselabError, OSError, ValueError):  # on the hub, or adapters
        if "decoder" in type(node).model_fields:
            return LlamaConfig()
        kind = family(node)
        return (RobertaConfig if kind == "roberta" else BertConfig)(**SHAPES[kind])

"""Training methods, one paper a file. `create("jtcse", settings)` builds one; `@register("mine")` adds your own."""

from cselab.methods.base import Batch, Ids, Method, Vectors, create, own_code, register
from cselab.methods.bellm import BeLLM
from cselab.methods.context import StepContext
from cselab.methods.distillation import Distillation
from cselab.methods.imsimcse import ImSimCSE
from cselab.methods.jtcse import JTCSE
from cselab.methods.noise_study import NoiseStudy
from cselab.methods.simcse import SimCSE
from cselab.methods.single_tower import SingleTowerTNCSE
from cselab.methods.supervised import SupervisedSimCSE
from cselab.methods.tncse import TNCSE

__all__ = [
    "JTCSE",
    "TNCSE",
    "Batch",
    "BeLLM",
    "Distillation",
    "Ids",
    "ImSimCSE",
    "Method",
    "NoiseStudy",
    "SimCSE",
    "SingleTowerTNCSE",
    "StepContext",
    "SupervisedSimCSE",
    "Vectors",
    "create",
    "own_code",
    "register",
]

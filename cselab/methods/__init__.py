"""Training methods, one paper a file. `create("jtcse", settings)` builds one; `@register("mine")` adds your own."""

from cselab.methods.angle import AnglE
from cselab.methods.arccse import ArcCSE
from cselab.methods.base import Batch, Ids, Method, Vectors, create, own_code, register, registered
from cselab.methods.bellm import BeLLM
from cselab.methods.consert import ConSERT
from cselab.methods.context import StepContext
from cselab.methods.diffcse import DiffCSE
from cselab.methods.distillation import Distillation
from cselab.methods.esimcse import ESimCSE
from cselab.methods.imsimcse import ImSimCSE
from cselab.methods.infocse import InfoCSE
from cselab.methods.iscse import ISCSE
from cselab.methods.jtcse import JTCSE
from cselab.methods.noise_study import NoiseStudy
from cselab.methods.pcl import PCL
from cselab.methods.promcse import PromCSE
from cselab.methods.prompted import PromptBERT
from cselab.methods.rankcse import RankCSE
from cselab.methods.scd import SCD
from cselab.methods.simcse import SimCSE
from cselab.methods.single_tower import SingleTowerTNCSE
from cselab.methods.sncse import SNCSE
from cselab.methods.supervised import SupervisedSimCSE
from cselab.methods.tncse import TNCSE
from cselab.methods.whitenedcse import WhitenedCSE

__all__ = [
    "ISCSE",
    "JTCSE",
    "PCL",
    "SCD",
    "SNCSE",
    "TNCSE",
    "AnglE",
    "ArcCSE",
    "Batch",
    "BeLLM",
    "ConSERT",
    "DiffCSE",
    "Distillation",
    "ESimCSE",
    "Ids",
    "ImSimCSE",
    "InfoCSE",
    "Method",
    "NoiseStudy",
    "PromCSE",
    "PromptBERT",
    "RankCSE",
    "SimCSE",
    "SingleTowerTNCSE",
    "StepContext",
    "SupervisedSimCSE",
    "Vectors",
    "WhitenedCSE",
    "create",
    "own_code",
    "register",
    "registered",
]

"""Methods, one paper a file: `create("jtcse")` builds one, `@register("name")` adds another.

Every file of this folder and of `baselines` is found by itself: a method is added or removed with
its file.
"""

from cselab.methods.base import Batch, Folders, Method, Outputs, SentenceOutputs, create
from cselab.methods.nodes import AnyMethod, MethodConfig, Schedule
from cselab.methods.registry import load_method_file, method_names, register, registered
from cselab.methods.terms import StepContext, TermConfig, Terms, term
from cselab.methods.training_free import Materials, TrainingFree

__all__ = [
    "AnyMethod",
    "Batch",
    "Folders",
    "Materials",
    "Method",
    "MethodConfig",
    "Outputs",
    "Schedule",
    "SentenceOutputs",
    "StepContext",
    "TermConfig",
    "Terms",
    "TrainingFree",
    "create",
    "load_method_file",
    "method_names",
    "register",
    "registered",
    "term",
]

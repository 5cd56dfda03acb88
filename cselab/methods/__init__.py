"""Training methods, one paper a file. `create("jtcse", settings)` builds one; `@register("mine")` adds your own."""

from cselab.methods.base import Batch, Ids, Method, StepContext, Vectors, create, register
from cselab.methods.jtcse import JTCSE
from cselab.methods.simcse import SimCSE
from cselab.methods.tncse import TNCSE

__all__ = ["JTCSE", "TNCSE", "Batch", "Ids", "Method", "SimCSE", "StepContext", "Vectors", "create", "register"]

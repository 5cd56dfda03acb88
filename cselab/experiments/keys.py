"""Keys: what makes a training the same training, wherever its files lie."""

import hashlib
import json
from typing import Any

from cselab.data.settings import RoundTrips
from cselab.data.translation.round_trip import RoundTrip
from cselab.experiments.cache import Cache
from cselab.experiments.code import code_of, code_of_modules
from cselab.methods import Method, MethodConfig, registered
from cselab.methods.nodes import MODEL, TrainedConfig


def key_inputs(cache: Cache, node: MethodConfig) -> dict[str, Any]:
    """All that the result of a node depends on.

    Its settings, the content of the data and models it reads, the code it runs, and the keys of the
    nodes before it.

    Args:
        cache: Whose data it reads.
        node: A part of a run's tree.
    """
    kind, fields = registered(node.method), type(node).model_fields
    own: dict[str, Any] = {}
    for name, value in node:
        if MODEL in fields[name].metadata:
            own[name] = cache.data.model_hash(value)
        elif isinstance(value, RoundTrips):
            own[name] = {
                "pivot": value.pivot,
                "mode": value.mode,
                "translator": cache.translator(value).fingerprint,
                "code": code_of_modules(RoundTrip.__module__),
            }
        elif name not in node.part_fields:
            own[name] = node.model_dump(mode="json", include={name})[name]
    parts = [node_key(cache, part) for part in node.parts]
    return {"config": own, "parts": parts, "data": data_read(cache, node), "code": code_of(kind)}


def data_read(cache: Cache, node: MethodConfig) -> dict[str, str]:
    """Fingerprints of the data that a node reads, by what it is."""
    kind = registered(node.method)
    if not issubclass(kind, Method):
        return {"text": cache.data.text_of(node).fingerprint} if kind.fits else {}
    dev = {"dev": cache.data.dev_pairs.fingerprint}
    if kind.reads == "triplets":
        return {**dev, "triplets": cache.data.triplets_hash}
    return {**dev, "text": cache.data.text.fingerprint}


def node_key(cache: Cache, node: MethodConfig) -> str:
    """Sixteen hex digits of `key_inputs`."""
    keys, name = cache.data.keys, (registered(node.method), node.model_dump_json())
    if name not in keys:
        keys[name] = digest(key_inputs(cache, node))
    return keys[name]


def digest(inputs: Any) -> str:
    """Sixteen hex digits of JSON-able values."""
    text = json.dumps(inputs, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def trained_parts(node: MethodConfig) -> list[MethodConfig]:
    """The nearest trained nodes that come before a node."""
    found: list[MethodConfig] = []
    for part in node.parts:
        found += [part] if isinstance(part, TrainedConfig) else trained_parts(part)
    return found

"""Keys: what makes a training the same training, wherever its files lie."""

import hashlib
import json
from typing import Any

from cselab.data.translation.config import RoundTrips
from cselab.data.translation.round_trip import RoundTrip
from cselab.experiments.code import code_of, code_of_modules
from cselab.experiments.session import Session
from cselab.methods import Method, MethodConfig, registered
from cselab.methods.config import MODEL, TrainedConfig


def key_inputs(session: Session, node: MethodConfig) -> dict[str, Any]:
    """All that the result of a node depends on.

    Its settings, the content of the data and models it reads, the code it runs, and the keys of the
    nodes before it.

    Args:
        session: Whose data it reads.
        node: A part of a run's tree.
    """
    kind, fields = registered(node.method), type(node).model_fields
    own: dict[str, Any] = {}
    for name, value in node:
        if MODEL in fields[name].metadata:
            own[name] = session.model_hash(value)
        elif isinstance(value, RoundTrips):
            own[name] = {
                "pivot": value.pivot,
                "mode": value.mode,
                "translator": session.translator(value).fingerprint,
                "code": code_of_modules(RoundTrip.__module__),
            }
        elif name not in node.part_fields:
            own[name] = node.model_dump(mode="json", include={name})[name]
    parts = [node_key(session, part) for part in node.parts]
    return {"config": own, "parts": parts, "data": data_read(session, node), "code": code_of(kind)}


def data_read(session: Session, node: MethodConfig) -> dict[str, str]:
    """Fingerprints of the data that a node reads, by what it is."""
    kind = registered(node.method)
    if not issubclass(kind, Method):
        return {"text": session.text_of(node).fingerprint} if kind.fits else {}
    dev = {"dev": session.dev_pairs.fingerprint}
    if kind.reads == "triplets":
        return {**dev, "triplets": session.triplets_hash}
    return {**dev, "text": session.text.fingerprint}


def node_key(session: Session, node: MethodConfig) -> str:
    """Sixteen hex digits of `key_inputs`."""
    text = json.dumps(key_inputs(session, node), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def trained_parts(node: MethodConfig) -> list[MethodConfig]:
    """The nearest trained nodes that come before a node."""
    found: list[MethodConfig] = []
    for part in node.parts:
        found += [part] if isinstance(part, TrainedConfig) else trained_parts(part)
    return found

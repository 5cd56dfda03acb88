"""Keys: what makes a training the same training, wherever its files lie."""

import hashlib
import json
from pathlib import Path
from typing import Any

from cselab.config import read_value
from cselab.data.corpus import Corpus
from cselab.data.csts import load_csts
from cselab.data.settings import RoundTrips
from cselab.data.translation.round_trip import RoundTrip
from cselab.experiments.cache import Cache, digest
from cselab.experiments.code import code_of, code_of_modules, code_of_notebook
from cselab.experiments.grid import Run
from cselab.experiments.run_data import RunData
from cselab.fingerprints import folder_hash
from cselab.methods import Method, MethodConfig, registered
from cselab.methods.baselines.fitted import Fitted
from cselab.methods.nodes import MODEL, TrainedConfig


def key_inputs(cache: Cache, node: MethodConfig) -> dict[str, Any]:
    """All that the result of a node depends on.

    Its settings, the content of the data and models it reads, the code it runs, and the keys of the
    nodes before it.
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


def fitted_text(data: RunData, node: MethodConfig) -> Corpus:
    """The text that a node without training is fitted to: the training text, or NLI's."""
    if isinstance(node, Fitted.Config) and node.text == "nli":
        return data.nli_text(node.fitted_on)
    return data.text


def data_read(cache: Cache, node: MethodConfig) -> dict[str, str]:
    """Fingerprints of the data that a node reads, by what it is."""
    kind = registered(node.method)
    if not issubclass(kind, Method):
        return {"text": fitted_text(cache.data, node).fingerprint} if kind.fits else {}
    dev = {"dev": cache.data.dev_pairs.fingerprint}
    if kind.reads == "triplets":
        return {**dev, "triplets": cache.data.triplets_hash}
    if kind.reads == "csts":
        return {f"csts {i}": rows.fingerprint for i, rows in enumerate(cache.data.csts)}
    return {**dev, "text": cache.data.text.fingerprint}


def node_key(cache: Cache, node: MethodConfig) -> str:
    """Sixteen hex digits of `key_inputs`."""
    keys, name = cache.data.keys, (registered(node.method), node.model_dump_json())
    if name not in keys:
        keys[name] = digest(key_inputs(cache, node))
    return keys[name]


def trained_parts(node: MethodConfig) -> list[MethodConfig]:
    """The nearest trained nodes that come before a node."""
    found: list[MethodConfig] = []
    for part in node.parts:
        found += [part] if isinstance(part, TrainedConfig) else trained_parts(part)
    return found


def run_key(run: Run, cache: Cache) -> str:
    """Sixteen hex digits of all that a run's numbers depend on."""
    data = cache.data.fingerprint
    if run.notebook:
        parameters = [(name, _without_paths(text)) for name, text in run.parameters]
        return digest([code_of_notebook(run.notebook), parameters, data])
    measures = [run.measures, code_of_modules("cselab.experiments.measures"), data]
    if "csts" in run.measures:  # of a folder, or synthetic
        measures.append(load_csts("dev", folder=run.config.data.data_dir).fingerprint)
    return digest([node_key(cache, run.config.method), run.seed, *measures])


def _without_paths(text: str) -> str:
    """A parameter of a notebook, as typed, with the hash of a path's content in its place."""
    values = read_value(text)
    if isinstance(values, list):
        return json.dumps([_without_paths(str(value)) for value in values])
    return ",".join(map(_content, text.split(",")))


def _content(text: str) -> str:
    path = Path(text)
    if path.is_absolute() and path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return folder_hash(path) if path.is_absolute() and path.is_dir() else text

"""The preset "released": methods as their own repositories' code has them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from cselab.data.sources import embedded_dir
from cselab.errors import SettingsError
from cselab.methods import MethodConfig, registered
from cselab.paths import check_readable, expanded


def released(node: MethodConfig) -> MethodConfig:
    """The tree with every node as its own repository's code has it."""
    node = node.with_parts(lambda part, _: released(part))
    # a method without a term has none of its differences
    return node.changed(node.fitting(released_values(node, family(node).partition("-")[0])))


def released_values(node: MethodConfig, backbones: str = "bert") -> dict[str, Any]:
    """Settings of a method's released code by dotted path.

    Args:
        backbones: "bert" or "roberta".
    """
    values = {}
    for path, value in registered(node.method).released.items():
        if isinstance(value, Mapping):
            if backbones not in value:
                continue
            value = value[backbones]
        values[path] = value(node) if callable(value) else value
    return values


def family(node: MethodConfig) -> str:
    """ "bert", "bert-large" or "roberta": whose settings a backbone has; of several, the first."""
    name, width = next(_models(node), ""), 0
    for folder in (embedded_dir() / "backbones" / name, expanded(name)):
        path = folder / "config.json"
        check_readable(path)
        if name and path.is_file():
            try:
                config = json.loads(path.read_text(encoding="utf-8"))
                name, width = str(config["model_type"]), int(config.get("hidden_size") or 0)
            except (ValueError, KeyError, TypeError) as error:
                raise SettingsError(
                    f"{path} is no model's configuration ({type(error).__name__}: {error}); give a "
                    "folder that save_pretrained wrote"
                ) from None
    if "roberta" in name.lower():
        return "roberta"
    return "bert-large" if width >= 1024 or "bert-large" in name.lower() else "bert"


def _models(node: MethodConfig) -> Iterator[str]:
    """Pretrained models of a tree, the first part's before the second's."""
    if node.pretrained_model:
        yield node.pretrained_model
    for part in node.parts:
        yield from _models(part)

"""What the loss playground says of a term, and which terms the browser computes by itself."""

import inspect
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, get_args, get_origin

import torch
from pydantic.fields import FieldInfo
from torch import Tensor

from cselab.evaluation import alignment, uniformity
from cselab.losses import info_nce
from cselab.methods import Method, StepContext
from cselab.methods.jtcse import JTCSE
from cselab.methods.terms import SHARED, TermConfig


class Text(NamedTuple):
    """A term's formula, in plain characters, and what the term does, in one sentence."""

    formula: str
    about: str


TEXTS = {
    "nce": Text(
        "−1/N Σᵢ log( exp(cos(aᵢ, bᵢ)/τ) / Σⱼ exp(cos(aᵢ, bⱼ)/τ) )   (SimCSE Eq. 4)",
        "InfoNCE turns the two views of a sentence towards each other, and away from other "
        "sentences; the nearest negatives most.",
    ),
    "off_info": Text(
        "−1/N Σᵢ log( exp(pᵢ) / (exp(pᵢ) + m Σⱼ≠ᵢ exp(cos(cᵢ, cⱼ)/τ)) ), pᵢ = cos(aᵢ, bᵢ)/τ   "
        "(SimCSE++ Eq. 3)",
        "InfoNCE whose negatives are vectors without dropout: here the mean of the two views.",
    ),
    "dcl": Text(
        "−Σ_c log( exp(⟨ã_c, b̃_c⟩/τ′) / Σ_d exp(⟨ã_c, b̃_d⟩/τ′) ), ã, b̃ standardised "
        "dimensions   (SimCSE++ Eq. 5)",
        "Each dimension finds itself in the other view, so that dimensions differ from each other.",
    ),
    "barlow": Text(
        "Σ_c (1 − C_cc)² + 0.012 Σ_{c≠d} C_cd², C the views' cross-correlation   (Barlow Twins)",
        "Equal dimensions of the two views correlate, different ones do not.",
    ),
    "arc": Text(
        "InfoNCE with cos(θᵢᵢ + m) in the place of cos(aᵢ, bᵢ)   (ArcCSE, ArcCon)",
        "InfoNCE that asks positives to be nearer than negatives by an angle m.",
    ),
    "rank": Text(
        "1/N Σᵢ JS( softmaxⱼ≠ᵢ(cos(aᵢ, bⱼ)/τ) ‖ softmaxⱼ≠ᵢ(cos(bᵢ, aⱼ)/τ) )   (RankCSE)",
        "Both views rank the other sentences alike.",
    ),
    "whitened": Text(
        "InfoNCE of W·a and W·b, W the whitening of a shuffled group of features   (WhitenedCSE)",
        "InfoNCE after the features have been decorrelated over the batch.",
    ),
    "self_contrast": Text(
        "1/N Σᵢ cos(aᵢ, bᵢ)   (SCD)",
        "Turns the two views of a sentence apart; another term has to hold them together.",
    ),
    "icnce": Text(
        "−1/N Σᵢ log( exp(cos(xᵢ, yᵢ)/τ) / Σⱼ exp(cos(xᵢ, yⱼ)/τ) ), x of tower I, y of tower II   "
        "(TNCSE; JTCSE Eq. 12)",
        "A sentence's vectors of the two towers are turned towards each other.",
    ),
    "ictm": Text(
        "1/N Σᵢ −log cos(xᵢ, yᵢ) · ( ‖p − q‖ / (‖p‖ + ‖q‖) summed over the crossed views )   "
        "(TNCSE L_ICTN; JTCSE L_ICTM)",
        "The two towers' vectors of a sentence get one direction; the pull on their lengths is "
        "strong only while the directions differ.",
    ),
    "modulus": Text(
        "1/N Σᵢ −log cos(aᵢ, bᵢ) · ‖aᵢ − bᵢ‖ / (‖aᵢ‖ + ‖bᵢ‖)   (TNCSE Table 5)",
        "The two views of a sentence get one direction; the pull on their lengths is strong only "
        "while the directions differ.",
    ),
    "nt_xent": Text(
        "InfoNCE over all 2N views but the row itself, at its own temperature   (ConSERT)",
        "InfoNCE in which the other sentences' vectors of both views are negatives.",
    ),
    "smoothed": Text(
        "min(1, step / warm-up) · InfoNCE(a, attention of b over a memory)   (IS-CSE)",
        "InfoNCE whose positives are smoothed over a memory; the playground's memory is empty.",
    ),
}
"""By the name of a term of the library."""


def described(method: Method, name: str) -> dict[str, Any]:
    """What the browser knows of a term, as JSON.

    Args:
        method: Whose term it is.
        name: Name of the term.

    Returns:
        Among others "known": the name under which `cselab/browser/losses.js` computes it, "" where
            only the kernel can; "fixed": further options for it; "fields": hyperparameters that can
            be changed.
    """
    known, fixed = recognised(method, name)
    config = method.settings.offered[name]
    text = TEXTS[name] if _of_library(method, name) and name in TEXTS else None
    written = getattr(method, name) if name in method.own_terms else SHARED[name][1]
    docstring = inspect.getdoc(written) or ""
    words = " ".join(docstring.partition("\n\n")[0].split())
    return {
        "name": name,
        "own": name in method.own_terms,
        "known": known,
        "fixed": fixed,
        "formula": text.formula if text else "",
        "about": text.about if text else words or "a term of this method",
        "fields": [
            _field(field, kind)
            for field, kind in config.model_fields.items()
            if field != "weight"
            and (kind.annotation in (int, float, bool) or get_origin(kind.annotation) is Literal)
        ],
    }


def _field(name: str, kind: FieldInfo) -> dict[str, Any]:
    """A hyperparameter as JSON: its choices, or the range of a number.

    least and most can be chosen; above and below cannot, only what lies between them.
    """
    limits: dict[str, float | None] = {"least": 0, "most": 90 if name == "margin" else None}
    limits |= {"above": None, "below": None}
    kinds = {"ge": "least", "le": "most", "gt": "above", "lt": "below"}
    for bound in kind.metadata:
        limits |= {to: getattr(bound, by) for by, to in kinds.items() if hasattr(bound, by)}
    return {
        "name": name,
        "choices": [True, False] if kind.annotation is bool else list(get_args(kind.annotation)),
        "default": kind.default,
        "whole": kind.annotation is int,
        "about": " ".join((kind.description or "").split()),
        **limits,
    }


def recognised(method: Method, name: str) -> tuple[str, dict[str, Any]]:
    """How the browser computes a term.

    A term of the library is recognised by its code. One of your own is, if its values and gradients
    are those of alignment, uniformity or InfoNCE.

    Args:
        method: Whose term it is.
        name: Name of the term.

    Returns:
        The term's name in `losses.js` and its fixed options; ("", {}) where it is not ported.
    """
    if not _of_library(method, name):
        return _by_values(method, name)
    if name == "whitened":
        return "", {}
    fixed: dict[str, Any] = {}
    if name == "icnce":
        fixed["anchor"] = "coin" if isinstance(method, JTCSE) else "I"
    if name == "smoothed":
        fixed["warm_up"] = method.settings.warm_up
    return (name, fixed) if name in TEXTS else ("", {})


def _of_library(method: Method, name: str) -> bool:
    """Whether all code that computes the term is the library's."""
    reads = ("compare", "_term", "spaces", "placed", "across", "over_neighbours")
    functions = [getattr(method, part) for part in reads if hasattr(method, part)]
    functions.append(getattr(method, name) if name in method.own_terms else SHARED[name][1])
    return all(function.__module__.startswith("cselab.methods.") for function in functions)


def _half_over(temperature: float) -> float:
    return 1 / (2 * temperature)


CANDIDATES: list[tuple[str, dict[str, Any], Callable[[Tensor, float], Tensor]]] = [
    ("align", {}, lambda x, tau: _half_over(tau) * alignment(*x)),
    ("align", {"t": 1}, lambda x, tau: alignment(*x)),
    ("uniform", {}, lambda x, tau: sum(uniformity(v, _half_over(tau)) for v in x) / 2),
    ("uniform", {"t": 2}, lambda x, tau: sum(uniformity(v) for v in x) / 2),
    ("nce", {"layout": "cross"}, lambda x, tau: info_nce(*x, temperature=tau)),
]


def _by_values(method: Method, name: str) -> tuple[str, dict[str, Any]]:
    plain = method.settings.offered[name] is TermConfig and len(method.space_names) == 1
    if not plain or name not in method.own_terms:
        return "", {}
    before, random = method.settings, torch.Generator().manual_seed(0)
    left = list(CANDIDATES)

    def own(x: Tensor, step: int) -> Tensor:
        return getattr(method, name)(method.placed([x]), StepContext.at(0, step))

    try:
        for size, temperature, step in [(2, 0.05, 0), (3, 0.5, 150), (2, 1.0, 2)]:
            method.settings = before.model_copy(update={"temperature": temperature})
            rows = torch.randn(2, 4, size, generator=random).requires_grad_()
            found = _with_slope(own, rows, step)
            left = [
                one
                for one in left
                if torch.allclose(
                    found, _with_slope(one[2], rows, temperature), rtol=1e-4, atol=1e-5
                )
            ]
    except Exception:  # a researcher's own code, which may need anything: the kernel computes it
        return "", {}
    finally:
        method.settings = before
    return (left[0][0], left[0][1]) if left else ("", {})


def _with_slope(loss: Callable[[Tensor, Any], Tensor], rows: Tensor, option: Any) -> Tensor:
    value = loss(rows, option)
    (slope,) = torch.autograd.grad(value, rows)
    return torch.cat([value.detach()[None], slope.flatten()])


def changed_options(config: TermConfig) -> dict[str, Any]:
    """A term's hyperparameters that differ from their defaults, without its weight."""
    return config.model_dump(exclude_defaults=True, exclude={"weight"})

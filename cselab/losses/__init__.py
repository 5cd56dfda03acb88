"""Losses: pure functions on tensors, one idea a file. Every one returns a scalar, a mean over sentences."""

from cselab.losses.icnce import icnce
from cselab.losses.info_nce import info_nce
from cselab.losses.modulus import ictm, modulus_ratio, modulus_surface

__all__ = ["icnce", "ictm", "info_nce", "modulus_ratio", "modulus_surface"]

"""Training on `transformers.Trainer`."""

from cselab.training.fit import FitResult, fit

__all__ = ["FitResult", "fit"]

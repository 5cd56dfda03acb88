"""Headless runs of notebooks: strict parameters, one kernel process each, pages that open offline.

Does not import torch.
"""

"""What weights are called in a stage's key."""

import hashlib

import torch


def weights_hash(*models: torch.nn.Module) -> str:
    """16 hexadecimal digits of the parameters and buffers, names and values, on whatever device they lie."""
    digest = hashlib.sha256()
    for model in models:
        for name, values in model.state_dict().items():
            digest.update(name.encode() + values.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]

"""The peers: a faithful re-creation of how research code for these methods usually runs.

Pad everything to 64, eager attention, float32, tokenise in the loop, losses that walk over rows in Python, plain AdamW;
evaluation that encodes every pair in order, padded to 128.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def info_nce_loop(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """One row at a time, one cosine call a row."""
    losses = []
    for i in range(len(a)):
        logits = F.cosine_similarity(a[i].unsqueeze(0), b) / temperature
        losses.append(-torch.log(torch.exp(logits[i]) / torch.exp(logits).sum()))
    return torch.stack(losses).mean()


def ictm_loop(cls_i: Tensor, cls_ii: Tensor, pooled_i: Tensor, pooled_ii: Tensor) -> Tensor:
    """TNCSE's modulus term, a sentence at a time; (2, N, d) each."""
    total = 0.0
    for n in range(cls_i.shape[1]):
        s = F.cosine_similarity(cls_i[0, n], cls_ii[0, n], dim=0)
        weight = -torch.log(s) if s > 0.05 else (0.05 - s) / 0.05 - torch.log(torch.tensor(0.05))
        for p, q in ((pooled_i[0, n], pooled_ii[1, n]), (pooled_ii[0, n], pooled_i[1, n])):
            total = total + weight * torch.norm(p - q) / (torch.norm(p) + torch.norm(q))
    return total / cls_i.shape[1]


class UsualTwin(nn.Module):
    """TNCSE's step as scripts write it: two towers, each run on each view, all hidden states kept."""

    def __init__(self, tower_i: nn.Module, tower_ii: nn.Module, tokenizer, temperature: float = 0.05):
        super().__init__()
        self.towers, self.tokenizer, self.temperature = nn.ModuleList([tower_i, tower_ii]), tokenizer, temperature

    def loss(self, sentences: list[str], device: torch.device) -> Tensor:
        batch = self.tokenizer(
            sentences, padding="max_length", truncation=True, max_length=64, return_tensors="pt", return_token_type_ids=False
        ).to(device)  # fmt: skip
        cls, pooled = [], []
        for tower in self.towers:
            views = [tower(**batch, output_hidden_states=True, output_attentions=True) for _ in range(2)]
            cls.append(torch.stack([view.hidden_states[-1][:, 0] for view in views]))
            pooled.append(torch.stack([view.pooler_output for view in views]))
        t = self.temperature
        nce = sum(info_nce_loop(own[0], own[1], t) for own in cls)
        across = sum(info_nce_loop(cls[0][view], cls[1][view], t) for view in range(2)) / 2
        return nce + across + ictm_loop(*cls, *pooled)

    def train_steps(self, batches: list[list[str]], learning_rate: float, device: torch.device) -> None:
        """One step a batch."""
        optimizer = torch.optim.AdamW(self.parameters(), lr=learning_rate, foreach=False, fused=False)
        self.train()
        for sentences in batches:
            loss = self.loss(sentences, device)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()  # for the progress bar


@torch.no_grad()
def encode_in_order(model: nn.Module, tokenizer, sentences: list[str], device: torch.device) -> Tensor:
    """Batches of 64 in the order they come, padded to 128, [CLS] of the last layer."""
    parts = []
    for start in range(0, len(sentences), 64):
        batch = tokenizer(
            sentences[start : start + 64], padding="max_length", truncation=True, max_length=128, return_tensors="pt",
            return_token_type_ids=False,
        ).to(device)  # fmt: skip
        parts.append(model(**batch, output_hidden_states=True).hidden_states[-1][:, 0].cpu())
    return torch.cat(parts)

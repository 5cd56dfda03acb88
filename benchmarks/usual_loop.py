"""Peers of the benchmarks: how research code for these methods usually trains and evaluates.

Padding to 64 tokens, eager attention, float32, tokenising in the loop, losses with Python loops
over rows, plain AdamW; evaluation that encodes every pair in order, padded to 128.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def info_nce_loop(a: Tensor, b: Tensor, temperature: float) -> Tensor:
    """InfoNCE, one row at a time."""
    losses = []
    for i in range(len(a)):
        logits = F.cosine_similarity(a[i].unsqueeze(0), b) / temperature
        losses.append(-torch.log(torch.exp(logits[i]) / torch.exp(logits).sum()))
    return torch.stack(losses).mean()


def ictm_loop(cls_i: Tensor, cls_ii: Tensor, pooled_i: Tensor, pooled_ii: Tensor) -> Tensor:
    """TNCSE's modulus term, one sentence at a time; (2, N, d) each."""
    total = 0.0
    for n in range(cls_i.shape[1]):
        s = F.cosine_similarity(cls_i[0, n], cls_ii[0, n], dim=0)
        weight = -torch.log(s) if s > 0.05 else (0.05 - s) / 0.05 - torch.log(torch.tensor(0.05))
        for p, q in ((pooled_i[0, n], pooled_ii[1, n]), (pooled_ii[0, n], pooled_i[1, n])):
            total = total + weight * torch.norm(p - q) / (torch.norm(p) + torch.norm(q))
    return total / cls_i.shape[1]


class UsualTwin(nn.Module):
    """TNCSE's training step as in scripts: each tower runs on each view, with all hidden states."""

    def __init__(
        self, tower_i: nn.Module, tower_ii: nn.Module, tokenizer, temperature: float = 0.05
    ):
        super().__init__()
        self.towers = nn.ModuleList([tower_i, tower_ii])
        self.tokenizer, self.temperature = tokenizer, temperature

    def loss(self, sentences: list[str], device: torch.device) -> Tensor:
        """InfoNCE in each tower, ICNCE and ICTN of a batch."""
        batch = self.tokenizer(
            sentences,
            padding="max_length",
            truncation=True,
            max_length=64,
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(device)
        cls, pooled = [], []
        for tower in self.towers:
            options = {"output_hidden_states": True, "output_attentions": True}
            views = [tower(**batch, **options) for _ in range(2)]
            cls.append(torch.stack([view.hidden_states[-1][:, 0] for view in views]))
            pooled.append(torch.stack([view.pooler_output for view in views]))
        t = self.temperature
        nce = sum(info_nce_loop(views[0], views[1], t) for views in cls)
        icnce = sum(info_nce_loop(cls[0][view], cls[1][view], t) for view in range(2)) / 2
        return nce + icnce + ictm_loop(*cls, *pooled)

    def train_steps(
        self, batches: list[list[str]], learning_rate: float, device: torch.device
    ) -> None:
        """One training step per batch."""
        optimizer = torch.optim.AdamW(
            self.parameters(), lr=learning_rate, foreach=False, fused=False
        )
        self.train()
        for sentences in batches:
            loss = self.loss(sentences, device)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()  # as for a progress bar


@torch.no_grad()
def encode_in_order(
    model: nn.Module, tokenizer, sentences: list[str], device: torch.device
) -> Tensor:
    """[CLS] of the last layer, in batches of 64 in their order, padded to 128."""
    parts = []
    for start in range(0, len(sentences), 64):
        batch = tokenizer(
            sentences[start : start + 64],
            padding="max_length",
            truncation=True,
            max_length=128,
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(device)
        parts.append(model(**batch, output_hidden_states=True).hidden_states[-1][:, 0].cpu())
    return torch.cat(parts)

"""Peers of the benchmarks: the same work as other code does it.

`ReleasedTwin` is TNCSE's training step with the arithmetic of its authors' code, `senteval` the
evaluation that SimCSE's script runs, and `LoopTwin` a step in which every loss loops over rows.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BatchEncoding

from cselab.data.sts import StsData


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


class Twin(nn.Module):
    """Two stock towers, and batches padded to 64 tokens with `views` of each sentence."""

    views = 1
    temperature = 0.05

    def __init__(self, tower_i: nn.Module, tower_ii: nn.Module, tokenizer):
        super().__init__()
        self.towers = nn.ModuleList([tower_i, tower_ii])
        self.tokenizer = tokenizer

    def batch(self, sentences: list[str], device: torch.device) -> BatchEncoding:
        """A batch on the device; scripts tokenise before they train."""
        return self.tokenizer(
            sentences * self.views,
            padding="max_length",
            truncation=True,
            max_length=64,
            return_tensors="pt",
            return_token_type_ids=False,
        ).to(device)


class LoopTwin(Twin):
    """TNCSE's training step as plain scripts have it: eager attention, each tower on each view,
    with all hidden states, and every loss one row at a time."""

    def loss(self, batch: BatchEncoding) -> Tensor:
        """InfoNCE in each tower, ICNCE and ICTN of a batch."""
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


class ReleasedTwin(Twin):
    """TNCSE's training step with the arithmetic of the released code (`model_dual.py`).

    Both views in one batch, padded to 64 tokens; stock attention and dropout; cosine matrices as
    matrices, a new one for each term; the modulus term one sentence at a time.
    """

    views = 2

    def loss(self, batch: BatchEncoding) -> Tensor:
        """InfoNCE in each tower, ICNCE and ICTN of a batch."""
        outputs = [tower(**batch, output_hidden_states=True) for tower in self.towers]
        x, y = (output.last_hidden_state[:, 0] for output in outputs)
        p, q = (output.pooler_output for output in outputs)
        terms = [self.other_view(a, b) for a, b in ((x, x), (y, y), (x, y))]
        return sum(terms) + self.norms(x, y, p, q) + self.norms(y, x, q, p)

    def norms(self, cls: Tensor, other: Tensor, pooled: Tensor, other_pooled: Tensor) -> Tensor:
        """View a of one tower against view b of the other: half the ratio of norms, weighted by
        -log of the cosine, 1e-4 where that is negative."""
        n, total = len(cls) // 2, 0.0
        cosines = F.cosine_similarity(cls[:, None], other[None], dim=-1)
        for i in range(n):
            s = cosines[i, n + i]
            s = s if s >= 0 else torch.full_like(s, 1e-4)
            a, b = pooled[i], other_pooled[n + i]
            total = total - torch.log(s) * torch.norm(a - b) / (torch.norm(a) + torch.norm(b)) / 2
        return total / n

    def other_view(self, rows: Tensor, columns: Tensor) -> Tensor:
        """NT-Xent: each of the 2N rows finds its sentence's other view."""
        n = len(rows) // 2
        logits = F.cosine_similarity(rows[:, None], columns[None], dim=-1) / self.temperature
        logits = logits - torch.eye(2 * n, device=rows.device) * 1e12
        return F.cross_entropy(logits, torch.arange(2 * n, device=rows.device).roll(n))


def train_steps(twin: Twin, batches: list[BatchEncoding], learning_rate: float) -> None:
    """One training step per batch, with torch's AdamW."""
    optimizer = torch.optim.AdamW(twin.parameters(), lr=learning_rate)
    twin.train()
    for batch in batches:
        optimizer.zero_grad()
        twin.loss(batch).backward()
        optimizer.step()


@torch.no_grad()
def senteval(
    model: nn.Module, tokenizer, data: StsData, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Cosines and ratings of an STS task as SentEval and SimCSE's script compute them: each subset
    sorted by length, batches of 128 pairs padded to their longest, one side after the other, [CLS],
    and the cosine of one pair at a time."""

    def encode(sentences: list[str]) -> np.ndarray:
        batch = tokenizer(sentences, return_tensors="pt", padding=True, truncation=True).to(device)
        output = model(**batch, output_hidden_states=True, return_dict=True)
        return output.last_hidden_state[:, 0].cpu().numpy()

    cosines, ratings = [], []
    subsets = data.subsets or [""] * len(data)
    for subset in dict.fromkeys(subsets):
        rows = zip(data.sentences1, data.sentences2, data.scores, subsets, strict=True)
        pairs = [row[:3] for row in rows if row[3] == subset]
        pairs.sort(key=lambda pair: (len(pair[0].split()), len(pair[1].split()), pair[2]))
        for start in range(0, len(pairs), 128):
            first, second, scores = zip(*pairs[start : start + 128], strict=True)
            for a, b in zip(encode(list(first)), encode(list(second)), strict=True):
                cosines.append(np.dot(a, b) / (np.linalg.norm(a) * np.linalg.norm(b)))
            ratings += scores
    return torch.tensor(np.array(cosines)), torch.tensor(ratings)

"""What the pretraining of every small encoder shares: masked LM and bag of words on sentences."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from cselab.data.token_rows import Rows
from cselab.methods.word_vectors import sif_weights
from cselab.pretraining.objectives import MaskedLM, random_tokens, sentence_losses, token_loss
from cselab.pretraining.run import LoopConfig, Run


@dataclass(frozen=True)
class EncoderConfig(LoopConfig):
    """Settings of masked LM and bag of words."""

    masked: float = 0.3
    """Share of masked words in single sentences."""
    bag_weight: float = 3.0
    """Weight of the bag-of-words loss; with 1, [CLS] scored a point less on STS-B dev. 0: none."""
    dropout: float = 0.1
    """As BERT; contrastive training makes its views with it."""
    dropout_last: float = 0.15
    """Share of the steps, the last ones, with dropout: drawing masks takes a third of the time."""


class EncoderRun(Run):
    """Masked LM and bag of words on single sentences; without bag of words if its weight is 0."""

    config: EncoderConfig

    def __init__(
        self,
        config: EncoderConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        model: MaskedLM,
        checkpoint: str | Path | None,
    ):
        self.ids_of = {"mask_id": tokenizer.mask_token_id, "pad_id": tokenizer.pad_token_id}
        self.weights = None
        if config.bag_weight:
            weights = sif_weights(rows, len(tokenizer), tokenizer.all_special_ids)
            self.weights = torch.tensor(weights, dtype=torch.float32, device=config.device)
        super().__init__(config, tokenizer, rows, model, checkpoint)

    def losses(self, which: np.ndarray) -> dict[str, torch.Tensor]:
        """Masked LM and weighted bag of words of the sentences.

        Args:
            which: Positions of the sentences.
        """
        self.set_dropout()
        words, bag = sentence_losses(
            self.model,
            self.padded(which),
            self.special,
            self.weights,
            **self.ids_of,
            masked=self.config.masked,
        )
        losses = {"masked LM": words}
        if bag is not None:
            losses["bag of words"] = self.config.bag_weight * bag
        return losses

    def set_dropout(self) -> None:
        """Set every dropout's rate to that of this step."""
        late = self.step >= (1 - self.config.dropout_last) * self.config.steps
        for part in self.model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = self.config.dropout if late else 0.0

    def held_out_loss(self) -> float:
        """Masked-LM loss of the held-out sentences, in nats."""
        return held_out_loss(
            self.model,
            self.rows,
            self.held_out,
            self.special,
            **self.ids_of,
            share=self.config.masked,
        )


@torch.no_grad()
def held_out_loss(
    model: MaskedLM,
    rows: Rows,
    which: np.ndarray,
    special: torch.Tensor,
    *,
    mask_id: int,
    pad_id: int,
    share: float,
    batch_size: int = 250,
) -> float:
    """Masked-LM loss in nats, without dropout, with the same masks at every call.

    Keeps the random state.

    Args:
        model: Model with a masked-LM head.
        rows: Tokens of the text.
        which: Positions of the held-out sentences.
        special: Ids that are not masked, (S,).
        mask_id: Id of [MASK].
        pad_id: Id of padding.
        share: Share of the tokens that is masked.
        batch_size: Sentences at a time.
    """
    model.eval()
    total, count = 0.0, 0
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for part in np.array_split(which, max(1, len(which) // batch_size)):
            ids = rows.padded(part, pad_id)
            # drawn on the CPU: the same on every device
            hidden = random_tokens(ids, special.cpu(), share).to(model.device)
            ids = ids.to(model.device)
            output = model.base_model(ids.masked_fill(hidden, mask_id), (ids != pad_id).long())
            loss = token_loss(model, output.last_hidden_state, ids, hidden)
            total += loss.item() * int(hidden.sum())
            count += int(hidden.sum())
    return total / count

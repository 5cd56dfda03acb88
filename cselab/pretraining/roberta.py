"""Pretraining of a small RoBERTa on plain sentences: byte-level BPE, masked LM, no sentence pairs.

Liu et al. 2019, https://arxiv.org/abs/1907.11692: masks are drawn anew at every visit of a
sentence, and there is no next-sentence task. Masked LM alone trains neither `<s>` nor a pooler.
Therefore, by default, both also predict the words of their sentence, as [CLS] does in
`cselab.pretraining.bert`. Without bag of words there is no pooler, as in the hub's roberta-base.
"""

from collections.abc import Iterable
from pathlib import Path

from transformers import PreTrainedTokenizerBase, RobertaConfig, RobertaForMaskedLM
from transformers.models.roberta.modeling_roberta import RobertaPooler

from cselab.data.token_rows import Rows
from cselab.pretraining.encoder import EncoderConfig, EncoderRun
from cselab.pretraining.run import train_tokenizer_and_tokenize
from cselab.pretraining.tokenizer import train_byte_tokenizer


def pretrain_roberta(
    config: EncoderConfig,
    sentences: Iterable[str],
    folder: str | Path,
    *,
    checkpoint: str | Path | None = None,
) -> dict:
    """Train a tokenizer and a RoBERTa; write a stock transformers folder.

    The model is `RobertaForMaskedLM` in float16.

    Args:
        config: Settings of the model and its training.
        sentences: As in `cselab.pretraining.bert.pretrain`.
        folder: Folder of the backbone.
        checkpoint: As in `cselab.pretraining.bert.pretrain`.

    Returns:
        The content of a card, as `cselab.pretraining.bert.pretrain`.

    Raises:
        DataError: As `cselab.pretraining.run.Run`.
        SettingsError: As `cselab.pretraining.run.Run`.
        ModelError: Before the training, if `folder` holds something else.
    """
    tokenizer, rows = train_tokenizer_and_tokenize(config, sentences, train_byte_tokenizer)
    return RobertaRun(config, tokenizer, rows, checkpoint).train_to(folder)


class RobertaRun(EncoderRun):
    """Masked LM, and bag of words from `<s>` and from the pooler."""

    def __init__(
        self,
        config: EncoderConfig,
        tokenizer: PreTrainedTokenizerBase,
        rows: Rows,
        checkpoint: str | Path | None,
    ):
        model = RobertaForMaskedLM(_roberta_config(config, tokenizer))
        if config.bag_weight:
            pooler = RobertaPooler(model.config)
            pooler.apply(model._init_weights)
            model.roberta.pooler = pooler
        super().__init__(config, tokenizer, rows, model, checkpoint)


def _roberta_config(config: EncoderConfig, tokenizer: PreTrainedTokenizerBase) -> RobertaConfig:
    return RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=config.width,
        num_hidden_layers=config.layers,
        num_attention_heads=config.heads,
        intermediate_size=config.inner,
        # positions count from pad_token_id + 1
        max_position_embeddings=config.max_positions + tokenizer.pad_token_id + 1,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        hidden_dropout_prob=config.dropout,
        attention_probs_dropout_prob=config.dropout,
    )

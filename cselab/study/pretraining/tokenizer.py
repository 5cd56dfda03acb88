"""Tokenizers of backbones and translators, trained deterministically on a text."""

import itertools
from collections.abc import Iterable

from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from cselab.data.translation.parallel import Parallel
from cselab.data.translation.translators import LONGEST

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ALPHABET = 200
"""Number of characters with a piece, the most frequent ones; a word with another one is [UNK]."""
START = "▁"


def train_tokenizer(
    sentences: Iterable[str], *, vocab_size: int, max_length: int
) -> PreTrainedTokenizerFast:
    """Train a lower-case WordPiece tokenizer; normalisation and splitting are BERT's.

    It wraps a `tokenizers` object: in transformers 5, `BertTokenizerFast(vocab_file=...)` maps
    every word to [UNK].
    """
    pieces = [*SPECIAL.values(), *_pieces(sentences, vocab_size - len(SPECIAL))]
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=SPECIAL["unk_token"]))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    ids = [(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=max_length, **SPECIAL
    )


def train_pair_tokenizer(text: Parallel, vocab_size: int) -> PreTrainedTokenizerFast:
    """Train a cased byte-pair tokenizer on both languages together."""
    special = ["<pad>", "</s>", "<unk>", *(f">>{language}<<" for language in text.languages)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(itertools.chain.from_iterable(text.pairs), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", tokenizer.token_to_id("</s>"))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_max_length=LONGEST,
    )


def _pieces(sentences: Iterable[str], count: int) -> list[str]:
    """Byte-pair merges in WordPiece's notation ("##ing" inside a word).

    `WordPieceTrainer` is not deterministic: it numbers pieces in the order of a hash map.
    """
    bpe = Tokenizer(models.BPE())
    bpe.normalizer = normalizers.BertNormalizer(lowercase=True)
    marked = pre_tokenizers.Metaspace(replacement=START, prepend_scheme="always", split=False)
    bpe.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), marked])
    trainer = trainers.BpeTrainer(vocab_size=count, limit_alphabet=ALPHABET, show_progress=False)
    bpe.train_from_iterator(sentences, trainer)
    vocabulary = bpe.get_vocab()
    ranked = [piece for piece in sorted(vocabulary, key=vocabulary.__getitem__) if piece != START]
    letters = [piece for piece in ranked if len(piece) == 1]
    longer = [
        piece[1:] if piece.startswith(START) else f"##{piece}" for piece in ranked if len(piece) > 1
    ]
    return list(dict.fromkeys([*letters, *(f"##{letter}" for letter in letters), *longer]))[:count]

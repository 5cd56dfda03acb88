"""Small stand-ins of the public repositories that the project names.

Ids, names of files and columns are the public ones; weights are random, text is synthetic, and
every model is 32 wide. Files for other frameworks are left out.
"""

import csv
import gzip
import io
import json
import string
import tarfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

import sentencepiece
import torch
from safetensors.torch import save_file
from tokenizers import processors
from transformers import (
    BertConfig,
    BertForPreTraining,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaTokenizer,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Tokenizer,
    RobertaConfig,
    RobertaForMaskedLM,
)
from transformers.models.m2m_100.tokenization_m2m_100 import FAIRSEQ_LANGUAGE_CODES

from cselab.data.synthetic import sentences, triplets
from cselab.study.pretraining.tokenizer import train_byte_tokenizer, train_tokenizer

WIDTH, LAYERS, DECODER_LAYERS = 32, 12, 4
"""Encoders are as deep as the public ones: divisors of the depth place cross-attention layers."""
VOCABULARY = 600
WIKI_LINES = 3000
NLI_ROWS = 275_601
SIMCSE = "datasets/princeton-nlp/datasets-for-simcse"
LANGUAGES = ("fr", "ru", "nl", "zh", "de", "es")
STS_PAIRS = {
    "sts12-sts": {"train": 2234, "test": 3108},
    "sts13-sts": {"test": 1500},
    "sts14-sts": {"test": 3750},
    "sts15-sts": {"test": 3000},
    "sts16-sts": {"test": 1186},
    "stsbenchmark-sts": {"train": 5749, "validation": 1500, "test": 1379},
    "sickr-sts": {"test": 9927},
}
STS17 = "ko-ko ar-ar en-ar en-de en-en en-tr es-en es-es fr-en it-en nl-en"
LANGUAGE_PAIRS = {
    "sts17-crosslingual-sts": ("score", STS17.split()),
    "stsb_multi_mt": (
        "similarity_score",
        ["en", "de", "es", "fr", "it", "nl", "pl", "pt", "ru", "zh"],
    ),
}
"""Column of the score, and subsets, of data that mteb loads at once for several languages."""
SICK_PAIRS = {"SICK_train.txt": 4500, "SICK_trial.txt": 500, "SICK_test_annotated.txt": 4927}


def make_repositories(folder: Path) -> None:
    """Write all stand-ins to `folder`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        _make_models(folder / "models")
    _make_datasets(folder / "datasets")


def _make_models(folder: Path) -> None:
    _bert(_new(folder / "google-bert/bert-base-uncased"))
    _simcse(_new(folder / "princeton-nlp/unsup-simcse-bert-base-uncased"))
    _sentence_bert(_new(folder / "sentence-transformers/bert-base-nli-mean-tokens"))
    _roberta(_new(folder / "FacebookAI/roberta-base"))
    _llama(_new(folder / "meta-llama/Llama-2-7b-hf"))
    _qwen(_new(folder / "Qwen/Qwen2.5-0.5B"))
    for language in LANGUAGES:
        _marian(_new(folder / f"Helsinki-NLP/opus-mt-en-{language}"), "en", language)
        _marian(_new(folder / f"Helsinki-NLP/opus-mt-{language}-en"), language, "en")
    _m2m100(_new(folder / "facebook/m2m100_418M"))


def _make_datasets(folder: Path) -> None:
    for name, splits in STS_PAIRS.items():
        _sts(_new(folder / "mteb" / name), splits)
    for name, columns in LANGUAGE_PAIRS.items():
        _many_languages(_new(folder / "mteb" / name), *columns)
    simcse = _new(folder.parent / SIMCSE)
    (simcse / "wiki1m_for_simcse.txt").write_text("".join(f"{line}\n" for line in _text()))
    _senteval(simcse / "senteval.tar")
    _write_nli(simcse / "nli_for_simcse.csv")


def _new(folder: Path) -> Path:
    """The folder, with the file that every repository has."""
    folder.mkdir(parents=True)
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs diff=lfs merge=lfs -text\n")
    return folder


@cache
def _text() -> tuple[str, ...]:
    return tuple(sentences(WIKI_LINES, seed=0))


def _training_text() -> Iterator[str]:
    """The text, and every printable character, so that a tokenizer has a piece for each."""
    yield from _text()
    yield " ".join(string.printable[:94])


def _write_json(path: Path, content: dict) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")


def _write_config(model: PreTrainedModel, folder: Path, **changes: object) -> None:
    _write_json(folder / "config.json", {**model.config.to_diff_dict(), **changes})


def _write_safetensors(tensors: dict[str, torch.Tensor], folder: Path) -> None:
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _parameters(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """By name; a head that shares the embeddings is not repeated."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def _small(**changes: object) -> dict:
    """Settings that the configurations of BERT, RoBERTa, Llama and Qwen share."""
    return {
        "hidden_size": WIDTH,
        "num_attention_heads": 4,
        "intermediate_size": 2 * WIDTH,
        **changes,
    }


def _bert(folder: Path) -> None:
    """With a pooler and both heads; LayerNorms have their old names, gamma and beta."""
    tokenizer = train_tokenizer(_training_text(), vocab_size=VOCABULARY, max_length=512)
    vocabulary = tokenizer.get_vocab()
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    pieces = sorted(vocabulary, key=vocabulary.get)
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces))
    _write_json(folder / "tokenizer_config.json", {"do_lower_case": True, "model_max_length": 512})
    config = BertConfig(**_small(vocab_size=len(pieces), num_hidden_layers=LAYERS))
    model = BertForPreTraining(config)
    _write_config(model, folder, architectures=["BertForMaskedLM"], model_type="bert")
    tensors = {}
    for name, tensor in _parameters(model).items():
        if "LayerNorm" in name:
            name = name.replace("weight", "gamma").replace("bias", "beta")
        tensors[name] = tensor
    _write_safetensors(tensors, folder)


def _simcse(folder: Path) -> None:
    """A checkpoint of a paper: a BERT with pytorch_model.bin only."""
    _bert(folder)
    model = BertModel.from_pretrained(folder)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    _write_config(model, folder, architectures=["BertModel"], model_type="bert")


def _sentence_bert(folder: Path) -> None:
    """A model of sentence-transformers: a BERT, mean pooling, and a copy in another format."""
    _bert(folder)
    own = "sentence_transformers.models"
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{own}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{own}.Pooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    for name in ("1_Pooling", "onnx"):
        (folder / name).mkdir()
    pooling = {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True}
    _write_json(folder / "1_Pooling" / "config.json", pooling)
    (folder / "onnx" / "model.onnx").write_bytes(b"another format")


def _roberta(folder: Path) -> None:
    """With a masked-LM head, without a pooler; old versions also stored the position ids."""
    tokenizer = train_byte_tokenizer(_training_text(), vocab_size=VOCABULARY, max_length=512)
    tokenizer.save_pretrained(folder)
    shape = {"num_hidden_layers": LAYERS, "max_position_embeddings": 514, "type_vocab_size": 1}
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "layer_norm_eps": 1e-5}
    config = RobertaConfig(**_small(vocab_size=len(tokenizer), **shape, **ids))
    model = RobertaForMaskedLM(config)
    _write_config(model, folder, architectures=["RobertaForMaskedLM"], model_type="roberta")
    positions = {"roberta.embeddings.position_ids": torch.arange(514)[None]}
    _write_safetensors(_parameters(model) | positions, folder)


def _llama(folder: Path) -> None:
    """Half precision, in two parts with an index; no padding token."""
    (folder / "tokenizer.model").write_bytes(_sentencepiece("bpe", byte_fallback=True))
    tokens = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    limits = {"model_max_length": 10**30, "clean_up_tokenization_spaces": False, "legacy": False}
    config = {
        "add_bos_token": True,
        "add_eos_token": False,
        **tokens,
        **limits,
        "tokenizer_class": "LlamaTokenizer",
    }
    tokenizer = LlamaTokenizer.from_pretrained(folder, **tokens)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s>:1 $B:1", special_tokens=[("<s>", 1)]
    )
    tokenizer.backend_tokenizer.save(str(folder / "tokenizer.json"))
    _write_json(folder / "special_tokens_map.json", tokens)
    _write_json(folder / "tokenizer_config.json", config)
    shape = {
        "num_hidden_layers": DECODER_LAYERS,
        "max_position_embeddings": 4096,
        "tie_word_embeddings": False,
    }
    model = LlamaForCausalLM(LlamaConfig(**_small(vocab_size=len(tokenizer), **shape))).half()
    size = sum(parameter.nbytes for parameter in model.parameters())
    model.save_pretrained(folder, max_shard_size=6 * size // 10)


def _qwen(folder: Path) -> None:
    """bfloat16, two heads of keys and values, tied embeddings; pads with its end token."""
    end_token = "<|endoftext|>"
    untrained = Qwen2Tokenizer(pad_token=end_token)
    tokenizer = untrained.train_new_from_iterator(_training_text(), VOCABULARY)
    tokenizer.model_max_length = 131072
    tokenizer.save_pretrained(folder)
    shape = {
        "num_hidden_layers": DECODER_LAYERS,
        "num_key_value_heads": 2,
        "tie_word_embeddings": True,
    }
    end = tokenizer.convert_tokens_to_ids(end_token)
    rows = len(tokenizer) + 5  # more embeddings than tokens, as the public one has
    ids = {"bos_token_id": end, "eos_token_id": end}
    model = Qwen2ForCausalLM(Qwen2Config(**_small(vocab_size=rows, **shape, **ids)))
    model.to(torch.bfloat16).save_pretrained(folder)


@cache
def _sentencepiece(kind: str, **options: object) -> bytes:
    """A sentencepiece model of the text; pieces <unk>, <s> and </s> come first."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=_training_text(),
        model_writer=written,
        model_type=kind,
        vocab_size=VOCABULARY,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


def _pieces() -> list[str]:
    """Pieces of the translators' sentencepiece model, without its three control symbols."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=_sentencepiece("unigram"))
    return [processor.id_to_piece(i) for i in range(3, processor.get_piece_size())]


def _write_vocabulary(folder: Path, pieces: Iterable[str]) -> int:
    """vocab.json; returns the number of pieces."""
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    return len(vocabulary)


def _seq2seq(**changes: object) -> dict:
    """Settings that the configurations of Marian and M2M100 share."""
    side = {"layers": 2, "attention_heads": 4, "ffn_dim": 2 * WIDTH}
    both = {f"{part}_{name}": n for part in ("encoder", "decoder") for name, n in side.items()}
    scale = {"d_model": WIDTH, "scale_embedding": True, "init_std": WIDTH**-0.5}
    return {**both, **scale, **changes}


def _write_translator(model: PreTrainedModel, folder: Path, **config: object) -> None:
    """config.json and pytorch_model.bin, with attention to the source that is strong enough.

    With plain random weights every sentence has the same translation.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "encoder_attn" in name:
                parameter.mul_(20)
    _write_config(model, folder, **config)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")


def _marian(folder: Path, source: str, target: str) -> None:
    """With pytorch_model.bin only, as the public ones. The Chinese model writes several scripts."""
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(_sentencepiece("unigram"))
    several = [">>cmn_Hans<<", ">>cmn_Hant<<"] if target == "zh" else []
    pad = _write_vocabulary(folder, ["</s>", "<unk>", *several, *_pieces(), "<pad>"]) - 1
    _write_json(folder / "tokenizer_config.json", {"target_lang": target, "source_lang": source})
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": pad, "decoder_start_token_id": pad}
    config = MarianConfig(**_seq2seq(vocab_size=pad + 1, max_position_embeddings=512, **ids))
    model = MarianMTModel(config)
    _write_translator(model, folder, architectures=["MarianMTModel"], model_type="marian")
    search = {"bad_words_ids": [[pad]], "forced_eos_token_id": 0, "max_length": 512, "num_beams": 4}
    _write_json(folder / "generation_config.json", {**ids, **search, "renormalize_logits": True})


def _m2m100(folder: Path) -> None:
    """A hundred languages, whose tokens follow the pieces; eight embeddings are unused."""
    (folder / "sentencepiece.bpe.model").write_bytes(_sentencepiece("unigram"))
    pieces = _write_vocabulary(folder, ["<s>", "<pad>", "</s>", "<unk>", *_pieces()])
    codes = [f"__{code}__" for code in FAIRSEQ_LANGUAGE_CODES["m2m100"]]
    tokens = {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "sep_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
    }
    _write_json(folder / "special_tokens_map.json", {**tokens, "additional_special_tokens": codes})
    config = {
        **tokens,
        "num_madeup_words": 8,
        "language_codes": "m2m100",
        "tokenizer_class": "M2M100Tokenizer",
    }
    _write_json(folder / "tokenizer_config.json", {**config, "src_lang": None, "tgt_lang": None})
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    shape = M2M100Config(**_seq2seq(vocab_size=pieces + len(codes) + 8, **ids))
    model = M2M100ForConditionalGeneration(shape)
    _write_translator(model, folder, architectures=[type(model).__name__], model_type="m2m_100")
    search = {"early_stopping": True, "max_length": 200, "num_beams": 5}
    _write_json(folder / "generation_config.json", {**ids, **search})


@dataclass(frozen=True)
class Pair:
    """Two sentences; overlap: the share of their words that both have, with noise, 0..1."""

    sentence1: str
    sentence2: str
    overlap: float

    def score(self, lowest: float) -> float:
        """A rating from `lowest` to 5."""
        return round(lowest + (5 - lowest) * self.overlap, 2)


def _pairs(count: int, seed: str) -> Iterator[Pair]:
    """Pairs of about 200 distinct sentences: fifty, each also with one word or another left out."""
    random = Random(seed)
    long = [sentence for sentence in _text() if len(sentence.split()) > 3]
    families = [_family(sentence, random) for sentence in random.sample(long, 50)]
    for _ in range(count):
        first = random.choice(families)
        second = first if random.random() < 0.6 else random.choice(families)
        one, two = random.choice(first), random.choice(second)
        a, b = set(one.lower().split()), set(two.lower().split())
        noisy = len(a & b) / len(a | b) + random.uniform(-0.1, 0.1)
        yield Pair(one, two, min(max(noisy, 0.0), 1.0))


def _family(sentence: str, random: Random) -> list[str]:
    """The sentence, and three times the sentence with a word left out."""
    words = sentence.split()
    left_out = random.sample(range(len(words)), 3)
    return [sentence, *(" ".join(words[:i] + words[i + 1 :]) for i in left_out)]


def _sts(folder: Path, splits: dict[str, int]) -> None:
    """SPLIT.jsonl.gz with sentence1, sentence2 and score."""
    (folder / "README.md").write_text("---\nlanguage:\n- en\n---")
    lowest = 1 if folder.name == "sickr-sts" else 0
    for split, count in splits.items():
        lines = ""
        for pair in _pairs(count, f"{folder.name} {split}"):
            row = {"sentence1": pair.sentence1, "sentence2": pair.sentence2}
            lines += json.dumps(row | {"score": pair.score(lowest)}) + "\n"
        packed = gzip.compress(lines.encode(), compresslevel=1, mtime=0)
        (folder / f"{split}.jsonl.gz").write_bytes(packed)


def _many_languages(folder: Path, score: str, subsets: list[str]) -> None:
    """test.jsonl with thirty pairs of each subset, whose name is in the column "lang"."""
    (folder / "README.md").write_text("---\nlanguage:\n- en\n---")
    with (folder / "test.jsonl").open("w") as file:
        for subset in subsets:
            for pair in _pairs(30, f"{folder.name} {subset}"):
                row = {"sentence1": pair.sentence1, "sentence2": pair.sentence2}
                row |= {score: pair.score(0), "lang": subset}
                file.write(json.dumps(row) + "\n")


def _senteval(path: Path) -> None:
    """The SICK part of the archive that SimCSE evaluates on: SICK/SICK_test_annotated.txt, …"""
    with tarfile.open(path, "w") as archive:
        for name, count in SICK_PAIRS.items():
            content = _sick(name, count).encode()
            member = tarfile.TarInfo(f"SICK/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _sick(name: str, count: int) -> str:
    lines = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
    for number, pair in enumerate(_pairs(count, name), 1):
        judgment = "ENTAILMENT" if pair.overlap > 0.8 else "NEUTRAL"
        lines.append(f"{number}\t{pair.sentence1}\t{pair.sentence2}\t{pair.score(1)}\t{judgment}")
    return "\n".join(lines) + "\n"


def _write_nli(path: Path) -> None:
    """SimCSE's triplets: 275,601 rows that differ in a number, made of 300 distinct ones."""
    drawn = [(t.anchor, t.entailed, t.contradicted) for t in triplets(300)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("sent0", "sent1", "hard_neg"))
        writer.writerows([f"{text} {i}" for text in drawn[i % len(drawn)]] for i in range(NLI_ROWS))

"""Small stand-ins of the public models and data that the project names, as a cache of the hub.

Ids, names of files and columns are the public ones; weights are random, text is synthetic, and
every model is 32 wide.
"""

import csv
import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import sentencepiece
import torch
from roberta_helpers import save_roberta
from safetensors.torch import save_file
from transformers import (
    BertConfig,
    BertForPreTraining,
    LlamaConfig,
    LlamaForCausalLM,
    LlamaTokenizer,
    MarianConfig,
    MarianMTModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Tokenizer,
)

from cselab.data.synthetic import sentences, triplets
from cselab.study.pretraining.tokenizer import train_tokenizer

COMMIT = "0" * 40
SMALL = {"hidden_size": 32, "num_attention_heads": 4, "intermediate_size": 64}
VOCABULARY = 600
NLI_ROWS = 275_601
LANGUAGES = ("fr", "ru", "nl", "zh")
STS_PAIRS = {
    "sts12-sts": {"test": 3108},
    "sts13-sts": {"test": 1500},
    "sts14-sts": {"test": 3750},
    "sts15-sts": {"test": 3000},
    "sts16-sts": {"test": 1186},
    "stsbenchmark-sts": {"validation": 1500, "test": 1379},
}
SICK_PAIRS = {"train": 4500, "test_annotated": 4927}
YEARLY = {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186}


def fill(home: Path) -> None:
    """Fill the cache in a folder, HF_HOME, with what the profile `paper` reads."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        save_bert(_snapshot(home, "models--google-bert--bert-base-uncased"))
        save_bert(_snapshot(home, "models--ffgcc--InfoCSE-bert-base"), pickled=True)
        save_roberta(_snapshot(home, "models--FacebookAI--roberta-base"), 0, pooler=False)
        _save_qwen(_snapshot(home, "models--Qwen--Qwen2.5-0.5B"))
        _save_llama(_snapshot(home, "models--meta-llama--Llama-2-7b-hf"))
        for language in LANGUAGES:
            for source, target in (("en", language), (language, "en")):
                name = f"models--Helsinki-NLP--opus-mt-{source}-{target}"
                _save_marian(_snapshot(home, name), target)
    for name, splits in STS_PAIRS.items():
        _write_sts(_snapshot(home, f"datasets--mteb--{name}"), splits)
    simcse = _snapshot(home, "datasets--princeton-nlp--datasets-for-simcse")
    (simcse / "wiki1m_for_simcse.txt").write_text("".join(f"{line}\n" for line in _text()))
    _write_senteval(simcse / "senteval.tar")
    _write_nli(simcse / "nli_for_simcse.csv")


def _snapshot(home: Path, repository: str) -> Path:
    """The folder of a repository's files, of which the cache knows that they are the newest."""
    folder = home / "hub" / repository
    (folder / "refs").mkdir(parents=True)
    (folder / "refs" / "main").write_text(COMMIT)
    (folder / "snapshots" / COMMIT).mkdir(parents=True)
    return folder / "snapshots" / COMMIT


@cache
def _text() -> tuple[str, ...]:
    return tuple(sentences(3000, seed=0))


def save_bert(folder: Path, *, pickled: bool = False) -> None:
    """As deep as the public one, with a pooler and both heads; LayerNorms have their old names,
    gamma and beta."""
    tokenizer = train_tokenizer(_text(), vocab_size=VOCABULARY, max_length=512)
    tokenizer.save_pretrained(folder)
    config = BertConfig(vocab_size=len(tokenizer), num_hidden_layers=12, **SMALL)
    config.save_pretrained(folder)
    tensors = {}
    for name, tensor in BertForPreTraining(config).named_parameters():
        if "LayerNorm" in name:
            name = name.replace("weight", "gamma").replace("bias", "beta")
        tensors[name] = tensor.detach()
    if pickled:
        torch.save(tensors, folder / "pytorch_model.bin")
    else:
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _save_qwen(folder: Path) -> None:
    """bfloat16, two heads of keys and values, tied embeddings; pads with its end token."""
    end_token = "<|endoftext|>"
    tokenizer = Qwen2Tokenizer(pad_token=end_token).train_new_from_iterator(_text(), VOCABULARY)
    tokenizer.model_max_length = 131072
    tokenizer.save_pretrained(folder)
    end = tokenizer.convert_tokens_to_ids(end_token)
    shape = {"num_hidden_layers": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    rows = len(tokenizer) + 5  # more embeddings than tokens, as the public one has
    config = Qwen2Config(vocab_size=rows, bos_token_id=end, eos_token_id=end, **shape, **SMALL)
    Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)


def _save_llama(folder: Path) -> None:
    """float16, as the public one, and a tokenizer without a padding token."""
    tokenizer = LlamaTokenizer().train_new_from_iterator(_text(), VOCABULARY)
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(vocab_size=len(tokenizer), num_hidden_layers=4, **SMALL)
    LlamaForCausalLM(config).to(torch.float16).save_pretrained(folder)


@cache
def _sentencepiece() -> bytes:
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(_text()),
        model_writer=written,
        vocab_size=VOCABULARY,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return written.getvalue()


def _save_marian(folder: Path, target: str) -> None:
    """With pytorch_model.bin only, as the public ones. The Chinese model writes several scripts."""
    pieces = sentencepiece.SentencePieceProcessor(model_proto=_sentencepiece())
    known = [pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size())]
    several = [">>cmn_Hans<<", ">>cmn_Hant<<"] if target == "zh" else []
    words = ["</s>", "<unk>", *several, *known, "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: i for i, word in enumerate(words)}))
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(_sentencepiece())
    (folder / "tokenizer_config.json").write_text("{}")
    pad = len(words) - 1
    ids = {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": pad, "decoder_start_token_id": pad}
    sides = {"layers": 2, "attention_heads": 4, "ffn_dim": 64}
    shape = {f"{side}_{part}": n for side in ("encoder", "decoder") for part, n in sides.items()}
    config = MarianConfig(vocab_size=len(words), d_model=32, init_std=32**-0.5, **shape, **ids)
    config.save_pretrained(folder)
    model = MarianMTModel(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "encoder_attn" in name:  # else every sentence has the same translation
                parameter.mul_(20)
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    search = {"bad_words_ids": [[pad]], "forced_eos_token_id": 0, "max_length": 512, "num_beams": 4}
    (folder / "generation_config.json").write_text(json.dumps({**ids, **search}))


def _pairs(count: int, seed: str) -> Iterator[tuple[str, str, float]]:
    """Pairs of 200 sentences, also with their first word left out, and the share of the words that
    both have, with noise: some pairs mean the same."""
    random, texts = Random(seed), _text()[:200]
    for _ in range(count):
        one, other = random.choice(texts), random.choice(texts)
        two = one.partition(" ")[2] if random.random() < 0.3 else other
        a, b = set(one.lower().split()), set(two.lower().split())
        noisy = len(a & b) / len(a | b) + random.uniform(-0.1, 0.1)
        yield one, two, min(max(noisy, 0.0), 1.0)


def _write_sts(folder: Path, splits: dict[str, int]) -> None:
    """SPLIT.jsonl.gz with sentence1, sentence2 and score."""
    for split, count in splits.items():
        with gzip.open(folder / f"{split}.jsonl.gz", "wt", compresslevel=1) as file:
            for one, two, overlap in _pairs(count, f"{folder} {split}"):
                row = {"sentence1": one, "sentence2": two, "score": round(5 * overlap, 2)}
                file.write(json.dumps(row) + "\n")


def _write_senteval(path: Path) -> None:
    """SICK's pairs and the yearly tasks in the archive that SimCSE evaluates on."""
    files = {}
    for split, count in SICK_PAIRS.items():
        lines = ["pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"]
        for number, (one, two, overlap) in enumerate(_pairs(count, split), 1):
            lines.append(f"{number}\t{one}\t{two}\t{1 + 4 * overlap:.2f}\tNEUTRAL")
        files[f"SICK/SICK_{split}.txt"] = lines
    for task, count in YEARLY.items():
        pairs = list(_pairs(count, task))
        folder = f"STS/{task}-en-test/STS"
        files[f"{folder}.input.part.txt"] = [
            f"{one.lower()}\t{two.lower()}" for one, two, _ in pairs
        ]
        files[f"{folder}.gs.part.txt"] = [f"{5 * overlap:.2f}" for _, _, overlap in pairs]
    with tarfile.open(path, "w") as archive:
        for name, lines in files.items():
            content = ("\n".join(lines) + "\n").encode()
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))


def _write_nli(path: Path) -> None:
    """SimCSE's triplets: 275,601 rows that differ in a number, made of 300 distinct ones."""
    drawn = [(t.anchor, t.entailed, t.contradicted) for t in triplets(300)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("sent0", "sent1", "hard_neg"))
        writer.writerows([f"{text} {i}" for text in drawn[i % len(drawn)]] for i in range(NLI_ROWS))

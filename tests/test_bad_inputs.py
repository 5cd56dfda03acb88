"""One table of users' mistakes: a name, what the user does, and what the message says in one line.

Each mistake goes through the front door: a command, `open_lab`, a loader of data, `check` of
a method, `load` and `export`. The message names the bad value and says what to do. No stage, run or
temporary file is left behind.
"""

import gzip
import io
import json
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from math import inf, nan
from pathlib import Path

import httpx
import huggingface_hub
import nbformat
import pytest
from distributed import LocalCluster
from example_result import RESULT
from huggingface_hub import errors
from safetensors.torch import load_file, save_file

from cselab import cli, open_lab
from cselab.data import load_corpus, load_csts, load_sts
from cselab.data.captions import load_captions
from cselab.data.nli import load_nli_triplets, load_simcse_triplets
from cselab.data.sources import embedded_dir
from cselab.data.transfer import load_transfer
from cselab.data.translation.parallel import load_parallel
from cselab.data.translation.translators import open_translator
from cselab.errors import CselabError
from cselab.experiments import configure
from cselab.experiments.store import Store
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder, export, load, load_decoder
from cselab.workbook.widgets import AttentionInspector, NormExplorer

QUICK = {"sentences": 60, "dev_pairs": 12, "synthetic_pairs": 40, "triplets": 10, "device": "cpu"}
BATCHES = {"batch_size": 8, "towers": {"batch_size": 8}}
BERT, LLAMA = (str(embedded_dir() / "backbones" / name) for name in ("tiny-bert", "tiny-llama"))
HEADER = "sentence1\tsentence2\tscore\n"
TURNS = {"a.tsv": HEADER + 9 * "a\tb\t0\nc\td\t5\n" + "a\tb\t0\n"}
CSV = HEADER.replace("\t", ",")
UTF_16 = "two words\n".encode("utf-16")
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
NUMBERS = "".join(f"{number**7:x}\n" for number in range(999))
CUT_OFF = gzip.compress(NUMBERS.encode(), mtime=0)[:500]
ONE = 'methods = ["sif"]\n'
IN_PLACE = (".lock", ".dirlock", "sweep.log", ".sqlite")
"""Endings of files that a refused command may leave: locks, the log of a sweep and its store."""


class User:
    """Somebody with a folder of files and a folder of outputs; the methods are what users do."""

    def __init__(self, folder: Path, request, monkeypatch):
        self.folder, self.outputs = folder, folder / "outputs"
        self.request, self.monkeypatch = request, monkeypatch

    def lab(self, **settings):
        return open_lab("bad", **{**QUICK, **BATCHES, "outputs": str(self.outputs), **settings})

    def check(self, method, **settings):
        """`Lab.check`; {folder} in a setting stands for the user's folder."""
        for name, value in settings.items():
            settings[name] = value.format(folder=self.folder) if isinstance(value, str) else value
        self.lab(**settings).check(method)

    def file(self, name: str, content: str | bytes = "") -> Path:
        """A file; text for a name that ends in .gz is compressed, bytes are written as they are."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = gzip.compress(content.encode()) if name.endswith(".gz") else content.encode()
        path.write_bytes(content)
        return path

    def reads(self, loader, name: str, file: str, content: str | bytes):
        """`loader(name)` with a data folder that has one file."""
        self.file(f"data/{file}", content)
        loader(name, folder=self.folder / "data")

    def opens(self, loader, file: str, content: str | bytes):
        """`loader(path)` of one file."""
        loader(str(self.file(file, content)))

    def sts(self, rows: str | bytes):
        """Somebody's dev split of STSBenchmark."""
        self.file("data/sts/stsb-dev.tsv.gz", rows)
        load_sts("STSBenchmark", "dev", folder=self.folder / "data")

    def trips(self, rows: str):
        self.file("trips.tsv", rows)
        self.check("simcse", translator="{folder}/trips.tsv")

    def cselab(self, *arguments: str, **files: str):
        """The command line in this process; {outputs} and {folder} are the user's.

        files: made before the command runs.
        """
        for name, content in files.items():
            self.file(name, content)
        words = [word.format(outputs=self.outputs, folder=self.folder) for word in arguments]
        self.monkeypatch.setattr(sys, "argv", ["cselab", *words])
        cli.main()

    def run(self, *arguments: str, outputs: str = "{outputs}", **files: str):
        self.cselab("run", "--outputs", outputs, *arguments, **files)

    def mteb(self, encoder: str, *arguments: str, **files: str):
        self.cselab("mteb", encoder, "--outputs", "{outputs}", *arguments, **files)

    def notebook(self, source: str = "", *arguments: str, tags: Sequence[str] = ("parameters",)):
        """A notebook of somebody's own, with one cell."""
        cell = nbformat.v4.new_code_cell(source, metadata={"tags": list(tags)})
        text = nbformat.writes(nbformat.v4.new_notebook(cells=[cell]))
        self.run("{folder}/a.ipynb", *arguments, **{"a.ipynb": text})

    def damaged_run(self):
        self.file("other/runs/one/run.json", "{}")
        self.cselab("run", "--outputs", "{folder}/other", "--resume", "one")

    def train(self, *arguments: str, **files: str):
        self.cselab("train", "--outputs", "{outputs}", *arguments, **files)

    def sweep(self, *arguments: str):
        self.cselab("sweep", "--dry-run", *arguments)

    def grid(self, text: str):
        self.cselab("sweep", "--dry-run", "{folder}/grid", grid=text)

    def cluster(self, parameter: str, store: str = "{outputs}/s.sqlite"):
        """A whole sweep, on a scheduler in this process."""
        given = ("-p", "sentences=60", "-p", "triplets=10", "-p", parameter, "-m", "simcse")
        kept = ("--outputs", "{outputs}", "--store", store)
        address = self.request.getfixturevalue("scheduler")
        self.cselab("sweep", *given, *kept, "--scheduler", address)

    def silent_scheduler(self):
        """The port of a server that waits for another protocol, as a dashboard does."""
        self.monkeypatch.setattr("cselab.experiments.cluster.START", 1)
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
            self.cselab("sweep", "-m", "sif", "--outputs", "{outputs}", "--scheduler", address)

    def report(self, *arguments: str):
        Store(self.folder / "s.sqlite").add(RESULT)
        self.cselab("report", "--store", "{folder}/s.sqlite", *arguments)

    def copy(self, shipped: str, change) -> str:
        """A copy of a shipped backbone, as a saved encoder, after `change(folder)`."""
        folder = self.folder / "backbone"
        shutil.copytree(shipped, folder)
        (folder / "cselab.json").write_text('{"kind": "sentence", "pooling": "cls", "prompt": ""}')
        change(folder)
        return str(folder)

    def backbone(self, change):
        self.check("simcse", backbone=self.copy(BERT, change))

    def decoder(self, change):
        self.check("bellm", decoder=self.copy(LLAMA, change))

    def own_code(self):
        """A model that brings code along, for which transformers asks "[y/N]"."""
        self.copy(BERT, config(model_type="mine", auto_map={"AutoConfig": "mine.Config"}))
        self.cselab("export", "{folder}/backbone", "{folder}/out")

    def model(self, fixture: str, **changes) -> SentenceEncoder:
        """A small random encoder of `conftest`."""
        make, tokenizer = map(self.request.getfixturevalue, (fixture, "word_tokenizer"))
        return SentenceEncoder(make(**changes), tokenizer)

    def twin(self, **options) -> TwinEncoder:
        one, two = (self.model("make_bert", seed=seed) for seed in (1, 2))
        return TwinEncoder(one.backbone, two.backbone, tokenizer=one.tokenizer, **options)

    def fused(self):
        export(self.twin(cael=(2,), cross_stream="fused"), self.folder / "out")

    def export_here(self):
        export(self.twin(), self.folder)

    def twin_as_backbone(self):
        self.twin().save_pretrained(self.folder / "twin")
        self.check("simcse", backbone="{folder}/twin")

    def norms(self, sentences):
        NormExplorer({"bert": self.model("make_bert")}, sentences)

    def two_widths(self):
        Ensemble([self.model("make_bert"), self.model("make_bert", hidden_size=16)])

    def inspector(self):
        decoder = SentenceEncoder(*load_decoder(LLAMA), pooling="last_token")
        AttentionInspector({"bellm": decoder}, "a sentence")

    def method(self, name: str, **overrides):
        self.lab().train(name, **overrides)

    def with_data(self, folder: str):
        self.monkeypatch.setenv("CSELAB_DATA", folder)
        self.check("simcse")

    def hub(self, error: Exception, offline: str = ""):
        """A backbone of the hub, whose every download ends in `error`."""

        def fail(*_, **__):
            raise error

        self.monkeypatch.setenv("HF_HUB_OFFLINE", offline)
        self.monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
        data = {"corpus": "synthetic", "tasks": "Synthetic", "dev_task": "Synthetic"}
        self.check("simcse", hub=True, backbone="bert/x", **data)


class Later:
    """`user.run("05")` in the table is a function of a user, called by the test."""

    def __getattr__(self, name: str):
        return lambda *given, **options: lambda user: getattr(user, name)(*given, **options)


def weights(part: str, change):
    """`change(values)` of the tensors whose names have `part`; None leaves them out."""

    def damage(folder: Path):
        path = folder / "model.safetensors"
        tensors = load_file(path)
        changed = {key: change(tensors[key]) if part in key else tensors[key] for key in tensors}
        kept = {name: values for name, values in changed.items() if values is not None}
        save_file(kept, path, metadata={"format": "pt"})

    return damage


def config(**changes):
    def damage(folder: Path):
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return damage


def nli(name: str, folder: Path):
    load_nli_triplets([name], folder=folder)


def without(name: str):
    return lambda folder: (folder / name).unlink()


def pointer(name: str):
    """What Git LFS leaves of a file where it did not pull."""
    return lambda folder: (folder / name).write_text(LFS.decode())


def pickled(content: str):
    def damage(folder: Path):
        (folder / "model.safetensors").unlink()
        (folder / "pytorch_model.bin").write_text(content)

    return damage


def no_padding(folder: Path):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "pad_token": None}))


def cut_off(folder: Path):
    os.truncate(folder / "model.safetensors", 5000)


def more_words(folder: Path):
    path = folder / "tokenizer.json"
    state = json.loads(path.read_text())
    state["model"]["vocab"] |= {f"new{number}": number for number in range(8000, 17000)}
    path.write_text(json.dumps(state))


NOT_CACHED = errors.LocalEntryNotFoundError("nothing in the cache")
NOT_THERE = errors.RepositoryNotFoundError(
    "404", response=httpx.Response(404, request=httpx.Request("GET", "https://hub"))
)
TRIPLET = "sent0,sent1,hard_neg\na,b,c\n"
LONE_QUOTE = 'sent0,sent1,hard_neg\n"' + "a" * 2**18
user = Later()
BAD = [
    # Settings.
    ("temperature inf", user.lab(temperature=inf), r"^temperature: .* finite .*, got inf"),
    (
        "temperature 1e-30",
        user.lab(temperature=1e-30),
        r"^temperature: .* or more, got 1e-30",
    ),
    ("seed -1", user.lab(seed=-1), r"^seed: expected 0 or more, got -1"),
    ("seed 2**31", user.lab(seed=2**31), r"^seed: .* below 2147483648, got 2147483648"),
    (
        "parameter in settings too",
        user.lab(seed=3, settings={"seed": 4}),
        r"^seed is given twice: 3 by its own name and 4 in settings; give it by its own name alone",
    ),
    ("setting", user.lab(temprature=0.1), r"'temprature'; did you mean 'temperature'\?"),
    ("profile", lambda u: configure("sif", "papers"), r"'papers'; did you mean 'paper'\?"),
    ("ambiguous path", user.method("uc", steps=5), r"'steps' fits several .*; write outsider\."),
    ("pooling", user.lab(pooling="clss"), r"pooling: .*'clss'; did you mean 'cls'\?"),
    ("CAELs -1", user.lab(caels=-1), r"^caels: expected 0 or more, got -1"),
    ("outputs in a file", user.lab(outputs=__file__), r"outputs: cannot write to .*; choose"),
    # The command line.
    ("command", user.cselab("trian"), r"command 'trian'.*'train'.*; see `.* --help`"),
    ("option", user.run("--job", "2"), r"option: --job .*--jobs.*; see `.* --help`"),
    ("argument missing", user.cselab("export", "x"), r"argument 'folder'; see `.* --help`"),
    ("-p without =", user.run("-p", "seed"), r"-p 'seed': expected name=value, e\.g\. -p seed=1"),
    ("-p of a wrong type", user.run("-p", "seed=x"), r"'seed' takes int.*, got 'x'"),
    ("-p unknown", user.run("-p", "sead=1"), r"'sead'; did you mean 'seed'\?"),
    ("--jobs 0", user.run("--jobs", "0"), r"--jobs 0: expected 1 or more"),
    ("notebook", user.run("03_jtsce"), r"notebook '03_jtsce'; did you mean '03_jtcse_tr"),
    # Notebooks of one's own.
    (
        "empty notebook",
        user.run("{folder}/a.ipynb", **{"a.ipynb": ""}),
        r"no.* of format 4 \(.*JSON",
    ),
    ("no notebook", user.run("{folder}/a.ipynb", **{"a.ipynb": "[]"}), r"a\.ipynb is not a"),
    ("untagged", user.notebook(tags=[]), r"has no cell tagged 'parameters'; tag the cell with"),
    ("a magic", user.notebook("%run b.py"), r"parameters cell: not plain Python .*; move what is"),
    ("page's name", user.run("{folder}/index.ipynb", **{"index.ipynb": ""}), r"index\.html;"),
    ("run taken", user.run("--name", "one", **{"outputs/runs/one/a.lock": ""}), r"exists; choose"),
    ("--resume", user.run("--resume", "one"), r"no run to resume in .*/one; expected its"),
    ("--resume -p", user.run("--resume", "one", "-p", "seed=6"), r"--resume takes .*; give none"),
    ("damaged run", user.damaged_run(), r"no run to resume in"),
    ("outputs of a run", user.run(outputs=__file__), r"cannot write to .*; choose another"),
    (
        "seed and seeds",
        user.sweep("-m", "sif", "--seeds", "1-2", "-p", "seed=7"),
        r"-p seed=7: seed is given by the command's own option or argument; give it there alone",
    ),
    ("-p outputs, run", user.run("00", "-p", "outputs=x"), r"-p outputs=x: .* give it there alone"),
    ("a setting twice", user.train("sif", "-p", "seed=1", "-p", "seed=2"), r"-p seed=2: seed is"),
    ("method", user.train("jtsce"), r"unknown method 'jtsce'; did you mean 'jtcse'\?"),
    ("two seeds", user.train("sif", "-p", "seeds=1-2"), r"does one run, .* are 2; `cselab sweep`"),
    ("store", user.train("sif", "--store", __file__), r"is no store .*; choose another --store"),
    ("report", user.cselab("report", "--store", "/no/s"), r"no store /no/s; `cselab sweep` makes"),
    ("--device", user.cselab("pretrain", "x", "--device", "gpu"), r"'gpu': expected cpu, cuda"),
    ("card", user.cselab("card", "{folder}", **{"card.json": "{"}), r"is damaged .*; make the"),
    # Files and folders that cannot be read or written, and a server that is no scheduler.
    ("report in a file", user.report("--folder", f"{__file__}/x"), r"write .*/x\S* \(Not a dir.*;"),
    ("store in a file", user.cluster("seed=1", f"{__file__}/s"), r"no store .*; choose another"),
    ("~ of nobody", user.report("--folder", "~no-one/x"), r"~no-one/x: no home .*; write the path"),
    ("-m in Latin-1", lambda u: u.sweep("-m", str(u.file("m.py", b"# caf\xe9"))), r"m\.py is not"),
    ("dashboard", user.silent_scheduler(), r"no scheduler answers at .* \(TimeoutError\); start"),
    # Sweeps and grids.
    ("--seeds 5-1", user.sweep("-m", "sif", "--seeds", "5-1"), r"'5-1' runs backwards; .* \"1-5\""),
    ("--workers 0", user.cselab("sweep", "-m", "sif", "--workers", "0"), r"0 .*: expected 1 or"),
    ("--only nothing", user.sweep("-m", "sif", "--only", "jt*"), r"--only jt\*: no run of the"),
    ("grid not there", user.sweep("/no/g.toml"), r"no grid /no/g\.toml .*; expected a TOML file"),
    ("grid no TOML", user.grid("methods = [sif]"), r"is no TOML: .*line 1, column 12"),
    ("grid's key", user.grid(ONE + "seed_s = 1"), r"'seed_s'; did you mean 'seeds'\?"),
    ("sweep's data", user.cluster("data_dir=/no/data"), r"no folder /no/data; a data folder holds"),
    ("sweep's backbone", user.cluster("backbone=tiny-brt"), r"no 'tiny-brt' here; did you mean"),
    # Test pairs.
    ("task", lambda u: load_sts("STSBenchmrk"), r"'STSBenchmrk'; did you mean 'STSBenchmark'\?"),
    ("split", lambda u: load_sts("STS12", "dev"), r"STS12 has no split 'dev'; valid: test"),
    ("no data", lambda u: load_sts("STS12"), r"STS12 test; set data_dir or CSELAB_DATA"),
    ("data_dir", user.check("simcse", data_dir="/no"), r"^data_dir: no folder /no; a data folder"),
    ("CSELAB_DATA", user.with_data("/no"), r"^CSELAB_DATA: no folder /no; a data folder holds"),
    ("doubled column", user.sts(HEADER[:-1] + "\tscore\n"), r"'score' is named twice; name each"),
    ("missing column", user.sts("sentence1\tscore\n"), r"'sentence2'; its first line must name"),
    ("score 7", user.sts(HEADER + "a\tb\t7\n"), r"line 2: score '7' .* from 0 to 5; correct"),
    ("pairs", user.sts(HEADER + "a\tb\t1\n"), r"has 1 pairs, .* has 1500; get the official file"),
    ("quoted tab", user.sts(HEADER + '"a\tm"\tb\t1\n'), r"line 2: 4 cells, .* must become a space"),
    # Files that are no text, and tables of other forms.
    ("UTF-16", user.opens(load_corpus, "a.txt", UTF_16), r"line 1: a NUL byte, .*; convert UTF"),
    ("PDF", user.opens(load_sts, "a.pdf", "%PDF-1.4\n"), r"a PDF, not a text; save its sent"),
    ("page", user.opens(load_captions, "a.tsv", "<!DOCTYPE html>"), r"a web page, not a text; sav"),
    ("JSON", user.opens(load_sts, "a.JSONL", "{}"), r"a \.jsonl file.*\(pandas\.read_json"),
    ("LFS", user.opens(load_corpus, "a.txt", LFS), r"a pointer of Git LFS, .*; run `git lfs"),
    ("old Mac", user.opens(load_sts, "a.tsv", "a\tb\rc"), r"a carriage return alone; save it"),
    ("few cells", user.sts(HEADER + "a\tb\n"), r"line 2: 2 cells, expected 3 .*; write all"),
    ("comma", user.opens(load_sts, "a.csv", CSV + "a,b,c,1\n"), r"4 cells, .* quote marks"),
    ("quote", user.opens(load_sts, "a.csv", CSV + '"a,b,1\n'), r"unexpected .* quote marks"),
    ("a folder of pairs", lambda u: load_sts(u.folder), r"is a folder; give the path of a file in"),
    ("file of C-STS", lambda u: load_csts(u.folder), r"C-STS has no split '.*'; valid: dev, test"),
    ("tasks 2024", user.train("sif", "-p", "tasks=2024"), r"unknown task '2024'; valid: SICK-R"),
    ("corpus true", user.train("sif", "-p", "corpus=true"), r"corpus: expected .*, got True"),
    (
        "one score",
        user.train("sif", "-p", "dev_pairs=10", "-p", "dev_task={folder}/a.tsv", **TURNS),
        r"dev_pairs=10 leaves pairs of one score, 0; give more, or None for all",
    ),
    # Text.
    ("corpus", user.reads(load_corpus, "bok", "corpus/book.txt.gz", "a"), r"'bok' .*mean 'book'\?"),
    (".csv", user.opens(load_corpus, "text.csv", "a,b"), r"text\.csv is not a text .*; save .* a"),
    ("folder", lambda u: load_corpus(str(u.folder)), r"is a folder; give the path of a file"),
    ("empty", user.opens(load_corpus, "a.txt", " \n"), r"no sentence in .*a\.txt; expected one"),
    ("document", user.opens(load_corpus, "a.txt", "a b " * 999), r"line 1: 1,998 words; .* split"),
    ("Latin-1", user.opens(load_corpus, "a.txt", b"caf\xe9"), r"not UTF-8 \(byte 0xe9\); convert"),
    ("cut off", user.opens(load_corpus, "a.txt.gz", CUT_OFF), r"truncated or damaged .*; copy it"),
    # Triplets, classification, captions, parallel text.
    ("NLI", user.reads(nli, "snl", "nli/snli.tsv.gz", ""), r"'snl' .*did you mean 'snli'\?"),
    ("NLI's columns", user.opens(load_simcse_triplets, "a.csv", "a,b"), r"no column 'sent0'; its"),
    ("NLI's rows", user.opens(load_simcse_triplets, "a.csv", TRIPLET), r"has 1 .* 275601; get"),
    (
        "NLI's quote",
        user.opens(load_simcse_triplets, "a.csv", LONE_QUOTE),
        r"line 2: .*; put quote",
    ),
    ("transfer", lambda u: load_transfer("SST"), r"task 'SST'; did you mean 'SST2'\?"),
    ("captions", user.opens(load_captions, "a.tsv", "a dog"), r"expected a scene, a tab .*'a dog'"),
    ("parallel", user.reads(load_parallel, "fr", "parallel/en-fr.tsv.gz", ""), r"'fr' .*'en-fr'\?"),
    # Translators.
    ("translator", user.check("simcse", translator="opus"), r"'opus'; did you mean 'opus-mt'\?"),
    ("pivot", user.check("sum", pivot="xx"), r"unknown pivot 'xx'; valid: de, es, fr"),
    ("an encoder", user.check("simcse", translator=BERT), r"'bert' .*, .* not translate; give a"),
    ("beam", lambda u: open_translator(BERT, "fr", beams=2, temperature=1.0), r"beams=2, .*:"),
    ("no trip", user.trips("sentence\tround_trip\na\tb\n"), r"has no round trip of .*; prepare it"),
    # The hub.
    ("no hub", user.check("simcse", backbone="bert/x"), r"no 'bert/x' here; .* set hub=True to"),
    ("opus-mt", user.check("simcse", translator="opus-mt"), r"'opus-mt' .*; set hub=True, or use"),
    ("offline", user.hub(NOT_CACHED, offline="1"), r"HF_HUB_OFFLINE is set; .*: hf download"),
    ("no network", user.hub(NOT_CACHED), r"the hub does not answer; .*: hf download bert/x"),
    ("no repository", user.hub(NOT_THERE), r"no model 'bert/x' on the hub; check the name"),
    # Backbones.
    ("NaN", user.backbone(weights("layer.2", lambda x: x * nan)), r"not finite \(.*; get the file"),
    ("cut-off weights", user.backbone(cut_off), r"do not load: expected a model\.safetensors that"),
    ("too few weights", user.backbone(weights("layer.2", lambda x: None)), r"lacks weights of its"),
    ("fewer layers than weights", user.backbone(config(num_hidden_layers=4)), r"weights that its"),
    ("other shapes", user.backbone(config(intermediate_size=9)), r"expected .* \(tensors of other"),
    ("no config", user.backbone(without("config.json")), r"no backbone at .*: expected a folder"),
    ("no tokenizer", user.backbone(without("tokenizer.json")), r"expected a tokenizer\.json"),
    ("other tokenizer", user.backbone(more_words), r"has 17000 tokens, .* 8000 .*; load both"),
    ("own code", user.own_code(), r"no model in .*custom code.*; expected a folder that"),
    ("decoder for encoder", user.check("simcse", backbone=LLAMA), r"'llama' .*; expected an"),
    # Methods.
    ("7 LayerNorms", user.check("tncse", layer_norms_removed=7), r"last 7 layers; the model has 6"),
    ("override", user.method("jtcse", cael=2), r"'cael'; did you mean 'caels'\?"),
    (
        "stream",
        user.method("jtcse", cross_stream="last"),
        r"got 'last'; did you mean 'last_only'\?",
    ),
    ("hyperparameter", user.method("arccse", **{"arc.margn": 5}), r"unknown setting 'arc\.margn';"),
    (
        "broken method file",
        user.train("mine", "-m", "{folder}/m.py", **{"m.py": "x = "}),
        r"m\.py: SyntaxError: .*; correct the file",
    ),
    ("own pairs", user.check("simcse", tasks="{folder}/none.tsv"), r"no file .*none\.tsv; a data"),
    ("prompt", user.check("bellm", prompt="sumarize"), r"'sumarize' is none of .*; write"),
    # Saved encoders and widgets.
    ("export", user.cselab("export", "{folder}/temporary", "{folder}/out"), r"no encoder in .*:"),
    # Files of models that are not what their names say; targets of an export; texts of widgets.
    ("LFS weights", user.backbone(pointer("model.safetensors")), r"is a pointer of Git LFS.*; run"),
    ("no pickle", user.backbone(pickled("x")), r"it is damaged, or has more than tensors\)$"),
    ("null width", user.backbone(config(hidden_size=None)), r"no backbone .*'hidden_size'.*None"),
    ("null padding", user.backbone(config(pad_token_id=None)), r"pads with id 0, .*None; load"),
    ("no padding token", user.decoder(no_padding), r"no padding token.*; set its pad_token"),
    ("twin as backbone", user.twin_as_backbone(), r"holds a twin; give the folder of a single"),
    ("mteb a name", user.cselab("mteb", "tiny-brt", "--task", "STS12"), r"'tiny-brt' .*tiny-bert'"),
    ("export into a file", user.cselab("export", BERT, "{folder}/f/out", f=""), r"cannot write"),
    ("init in a file", user.cselab("init", "{folder}/f", f=""), r"cannot write to .*/f \(Not a"),
    (
        "pretrain over an encoder",
        user.cselab("pretrain", "{folder}/x", **{"x/cselab.json": '{"files": ["cselab.json"]}'}),
        r"x holds a saved encoder; choose a new folder",
    ),
    ("one sentence", user.norms("a dog"), r"got one string; wrap it: NormExplorer\(\[sentence\]\)"),
    ("fused twin", user.fused(), r"a fused twin .*; use cselab\.load on its own folder"),
    ("export taken", user.export_here(), r"is no saved encoder, .*; choose another folder"),
    ("load a file", lambda u: load(u.file("a/cselab.json", "{").parent), r"damaged .*; save the"),
    ("two widths", user.two_widths(), r"have 16, 32 dimensions; a sum needs one width"),
    ("inspector", user.inspector(), r"'bellm' has no BERT-like tower .*; give encoders or twins"),
]


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a dask scheduler with a worker in this process."""
    options = {"processes": False, "dashboard_address": None, "threads_per_worker": 1}
    folder = tmp_path_factory.mktemp("dask")
    with LocalCluster(n_workers=1, local_directory=str(folder), **options) as cluster:
        yield cluster.scheduler_address


def left_behind(u: User) -> list[str]:
    """Files of steps, runs, exports and temporary folders; empty folders do not count."""
    places = [u.outputs, u.folder / "temporary", u.folder / "out"]
    files = [path for place in places for path in place.rglob("*") if path.is_file()]
    return [str(path) for path in files if not path.name.endswith(IN_PLACE)]


@pytest.mark.parametrize(("do", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_bad_input(do, message, tmp_path, request, monkeypatch, capsys):
    """Prevents a traceback, a bad value that is accepted, and half a stage that is left."""
    for name in ("CSELAB_RUN_DIR", "CSELAB_OUTPUTS", "CSELAB_DATA", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(sys, "stdin", io.StringIO())  # whoever asks at the keyboard fails
    u = User(tmp_path, request, monkeypatch)
    with pytest.raises((CselabError, SystemExit)) as caught:
        do(u)
    said = str(caught.value)
    if caught.type is SystemExit:
        assert caught.value.code == 2
        said = capsys.readouterr().err.removesuffix("\n")
        assert said.startswith("cselab: ")
        said = said.removeprefix("cselab: ")
    assert re.search(message, said), said
    assert "\n" not in said
    assert left_behind(u) == []

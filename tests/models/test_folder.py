"""Folders of saved and exported encoders: they own their files, touch no other, and open in
sentence-transformers and here with the same embeddings."""

import json
import os
import resource
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

import cselab
from cselab.errors import ModelError
from cselab.models import Ensemble, SentenceEncoder, TwinEncoder, export


@pytest.fixture
def tower(make_bert, word_tokenizer):
    return SentenceEncoder(make_bert(1), word_tokenizer, pooling="mean")


@pytest.fixture
def clone(tower, tmp_path):
    """An export in a clone of the hub, with what its user put beside it."""
    folder = tmp_path / "clone"
    export(tower, folder)
    for name in (".git/HEAD", "README.md", "1_Pooling/notes.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("mine")
    return folder


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


MINE = {".git/HEAD", "README.md", "1_Pooling/notes.txt"}


def test_an_export_replaces_exactly_the_files_of_the_one_before(clone, tower, tmp_path):
    """Prevents the loss of .git and README, and files of the encoder before that stay."""
    before = files(clone)
    assert before > MINE
    export(tower, clone)
    assert files(clone) == before
    twin = TwinEncoder(tower.backbone, tower.backbone, tokenizer=tower.tokenizer)
    for encoder in (twin, Ensemble([tower, twin]), tower):
        encoder.save_pretrained(clone)
        encoder.save_pretrained(tmp_path / "alone" / type(encoder).__name__)
        assert files(clone) - MINE == files(tmp_path / "alone" / type(encoder).__name__)
        assert type(cselab.load(clone)) is type(encoder)
    assert {(clone / name).read_text() for name in MINE} == {"mine"}


def test_what_no_saved_encoder_wrote_is_not_overwritten(clone, tower, tmp_path):
    """Prevents a user's file of the same name from being replaced, and a card that came from
    elsewhere from having files outside removed."""
    tower.save_pretrained(clone)  # has no modules.json
    (clone / "modules.json").write_text("mine")
    before = files(clone)
    with pytest.raises(ModelError, match=r"modules\.json is in the way"):
        export(tower, clone)
    assert files(clone) == before
    (tmp_path / "thesis.txt").write_text("years")
    (clone / "modules.json").unlink()
    card = json.loads((clone / "cselab.json").read_text())
    card["files"] += ["../thesis.txt", str(tmp_path / "thesis.txt")]
    (clone / "cselab.json").write_text(json.dumps(card))
    export(tower, clone)
    assert (tmp_path / "thesis.txt").read_text() == "years"


def test_saving_replaces_no_folder_that_is_no_encoder(tower, tmp_path):
    """Prevents save_pretrained("outputs") from removing everything in it, or half an ensemble."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("years")
    for encoder in (tower, Ensemble([tower, tower])):
        with pytest.raises(ModelError, match="exists and is no saved encoder, so it is not"):
            encoder.save_pretrained(tmp_path / "work")
    assert (tmp_path / "work" / "thesis.txt").read_text() == "years"
    (tmp_path / "empty").mkdir()
    tower.save_pretrained(tmp_path / "empty")  # an empty folder is filled
    assert {path.name for path in tmp_path.iterdir()} == {"empty", "work"}


@pytest.mark.parametrize("broken", ["to old", "to new"])
def test_an_export_that_fails_leaves_the_one_before(clone, tower, monkeypatch, broken):
    """Prevents half an encoder where a whole one was."""
    before, replace, calls = files(clone), os.replace, []
    content = (clone / "cselab.json").read_text()

    def fail(source, target):
        calls.append(target)
        if len(calls) == (3 if broken == "to old" else len(before - MINE) + 3):
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(ModelError, match=r"cannot write .*clone \(Permission denied\)"):
            export(tower, clone)
    assert files(clone) == before
    assert (clone / "cselab.json").read_text() == content


def test_odd_targets(tower, tmp_path, monkeypatch):
    """Prevents a folder that is moved away under a link or the working folder, which fails."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "dangling").symlink_to("nowhere")
    for name in ("link", "dangling"):
        for _ in range(2):
            export(tower, tmp_path / name)
        assert (tmp_path / name).is_symlink()
        assert cselab.load(tmp_path / name).pooling == "mean"
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    export(tower, ".")
    assert cselab.load(".").pooling == "mean"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"dangling", "here", "link", "nowhere", "real"}


def test_a_full_disk_is_one_line_and_leaves_nothing(tower, tmp_path):
    """Prevents the traceback of each library's own error (here, a file may not be longer)."""
    (tmp_path / "there").mkdir()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, before[1]))
    try:
        for name in ("new", "there"):
            with pytest.raises(ModelError, match=rf"cannot write .*{name} \(File too large\); cho"):
                export(tower, tmp_path / name)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in tmp_path.rglob("*")] == ["there"]


def test_a_folder_without_permission_is_found_before_anything_is_written(tower, tmp_path):
    """Prevents hours of training for a folder that cannot be written."""
    (tmp_path / "shut").mkdir(mode=0o555)
    root = os.geteuid() == 0
    if root:  # whom no permission stops
        os.seteuid(65534)
    try:
        for name in ("shut", "shut/new"):
            with pytest.raises(ModelError, match=r"cannot write .*shut.* \(Permission denied\)"):
                tower.save_pretrained(tmp_path / name)
    finally:
        if root:
            os.seteuid(0)
    assert files(tmp_path) == set()


TEXTS = [
    "a man is playing guitar .",
    "the dog",
    "the big red ball was not under the table .",
    "dog",
]


@pytest.mark.parametrize("pooling", ["cls", "mean", "last_token", "pooler"])
def test_a_single_tower_is_stock_modules(make_tower, word_tokenizer, tmp_path, pooling):
    """Prevents another pooling, a lost [CLS], or a folder that asks to run foreign code."""
    encoder = SentenceEncoder(make_tower(3), word_tokenizer, pooling=pooling)
    expected = encoder.encode(TEXTS)
    export(encoder, tmp_path / "out")
    opened = SentenceTransformer(str(tmp_path / "out"), device="cpu")
    found = opened.encode(TEXTS, convert_to_tensor=True)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        cselab.load(tmp_path / "out").encode(TEXTS), expected, atol=1e-6, rtol=0
    )
    long = " ".join(["dog"] * 200)  # cut at what the backbone reads, not an index error
    torch.testing.assert_close(
        opened.encode([long], convert_to_tensor=True), encoder.encode([long]), atol=1e-5, rtol=0
    )


def test_a_twin_needs_consent_to_its_one_module(make_tower, word_tokenizer, tmp_path):
    """Prevents code that runs without being asked for, and a twin that opens as one tower."""
    encoder = TwinEncoder(
        make_tower(3), make_tower(4), cael=(2, 4), tokenizer=word_tokenizer
    ).eval()
    export(encoder, tmp_path / "out")
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(tmp_path / "out"))
    opened = SentenceTransformer(str(tmp_path / "out"), trust_remote_code=True, device="cpu")
    expected = encoder.encode(TEXTS)
    torch.testing.assert_close(
        opened.encode(TEXTS, convert_to_tensor=True), expected, atol=1e-5, rtol=0
    )
    # and it survives the other library's own saving
    opened.save_pretrained(str(tmp_path / "again"))
    assert "SecondTower" in (tmp_path / "again" / "modules.json").read_text()
    ours = cselab.load(tmp_path / "out")
    assert ours.cael == (2, 4)
    torch.testing.assert_close(ours.encode(TEXTS), expected, atol=1e-6, rtol=0)

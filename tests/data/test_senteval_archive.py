"""SentEval's archive on the hub: read as its toolkit reads it."""

import io
import tarfile

import pytest

from cselab.data import load_corpus, load_sts, senteval_archive, sts, transfer
from cselab.data.transfer import load_transfer
from cselab.errors import DataError


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """`archive(files)`: SentEval's data on the hub, with these files by name."""

    def archive(files):
        path = tmp_path / "senteval.tar"
        with tarfile.open(path, "w") as tar:
            for name, content in files.items():
                content = content.encode("latin-1" if name.startswith("MR/") else "utf-8")
                member = tarfile.TarInfo(f"SentEval/data/downstream/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
        monkeypatch.setattr(senteval_archive, "hub_file", lambda name, file: path)
        monkeypatch.delenv("CSELAB_DATA", raising=False)
        senteval_archive._files.cache_clear()

    yield archive
    senteval_archive._files.cache_clear()


SICK = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\n1\tA dog\tA cat\t{}\n2\tA dog\tIt\t1\n"


def test_the_hubs_senteval_text_and_sick_are_read_as_its_toolkit_reads_them(archive, monkeypatch):
    """Prevents pairs without a rating that count, subsets under a wrong name, and scored sentences
    in the training text."""
    part = "STS/STS12-en-test/STS.{}.{}.txt"
    archive(
        {
            part.format("input", "MSRpar"): "a b\tc d\nno\trating\ne\tf\n",
            part.format("gs", "MSRpar"): "4.5\n\n1\n",
            part.format("input", "surprise.OnWN"): "g\th\n",
            part.format("gs", "surprise.OnWN"): "2\n",
            "SICK/SICK_train.txt": SICK.format(3.5),
            "SICK/SICK_test_annotated.txt": SICK.format(5),
        }
    )
    counts = {"STS12": {"test": 3}, "SICK-R": {"train": 2, "test": 2, "dev": 2}}
    monkeypatch.setattr(sts, "_COUNTS", sts._COUNTS | counts)
    data = load_sts("STS12", text="senteval", hub=True)
    assert list(zip(data.sentences1, data.sentences2, data.scores, data.subsets, strict=True)) == [
        ("a b", "c d", 4.5, "MSRpar"),
        ("e", "f", 1, "MSRpar"),
        ("g", "h", 2, "OnWN"),
    ]
    assert load_sts("SICK-R", "test", hub=True).scores.tolist() == [5, 1]
    assert list(load_corpus("sickr", hub=True)) == ["A dog", "A cat", "It"]
    with pytest.raises(DataError, match=r"senteval.tar has no readable SICK/SICK_trial.txt"):
        load_sts("SICK-R", "dev", hub=True)


TRANSFER = {
    "MR/rt-polarity.pos": "caf\xe9 good .\nfine\n",
    "MR/rt-polarity.neg": "bad\n",
    "SST/binary/sentiment-train": "a film\t1\nno\t0\n",
    "SST/binary/sentiment-dev": "so\t1\n",
    "SST/binary/sentiment-test": "ok\t1\n",
    "TREC/train_5500.label": "DESC:manner How : so ?\nHUM:ind Who ?\n",
    "TREC/TREC_10.label": "NUM:count How many ?\n",
    "MRPC/msr_paraphrase_train.txt": "Quality\t#1\t#2\ta\tb\n1\t7\t8\tone\ttwo\n",
    "MRPC/msr_paraphrase_test.txt": "Quality\t#1\t#2\ta\tb\n0\t7\t8\tx\ty\n",
}


def test_the_transfer_tasks_of_the_archive(archive, monkeypatch):
    """Prevents labels of the wrong class, a header that is a pair, a colon that cuts a question,
    and texts of another encoding."""
    archive(TRANSFER)
    counts = {
        "MR": {"": 3},
        "SST2": {"train": 2, "dev": 1, "test": 1},
        "TREC": {"train": 2, "test": 1},
        "MRPC": {"train": 1, "test": 1},
    }
    monkeypatch.setattr(transfer, "COUNTS", counts)

    def rows(task, part):
        data = load_transfer(task, hub=True)[part]
        return [(*texts, label) for *texts, label in zip(*data.texts, data.labels, strict=True)]

    assert rows("MR", "") == [("bad", "0"), ("caf\xe9 good .", "1"), ("fine", "1")]
    assert rows("SST2", "train") == [("a film", "1"), ("no", "0")]
    assert rows("TREC", "train") == [("How : so ?", "DESC"), ("Who ?", "HUM")]
    assert rows("TREC", "test") == [("How many ?", "NUM")]
    assert rows("MRPC", "test") == [("x", "y", "0")]
    monkeypatch.setattr(transfer, "COUNTS", {**counts, "MR": {"": 4}})
    with pytest.raises(DataError, match=r"senteval.tar, MR has 3 rows, officially it has 4"):
        load_transfer("MR", hub=True)

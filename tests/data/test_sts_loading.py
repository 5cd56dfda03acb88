"""STS loading: real counts, quoting off, and one clear line for every kind of broken file."""

import gzip
import shutil

import pytest
from cselab.data.sts import STS7, load_sts
from cselab.errors import DataError

HEADER = "sentence1\tsentence2\tscore\tsubset"
COUNTS = {"STS12": 3108, "STS13": 1500, "STS14": 3750, "STS15": 3000, "STS16": 1186, "STSBenchmark": 1379, "SICK-R": 4927}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder with a well-formed STS-B dev of 1,500 made-up pairs; `folder.write(lines)` replaces them."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    (tmp_path / "sts").mkdir()
    write(tmp_path, [HEADER, *[f'he said "no {i}\tshe said \'yes\t{i % 6}\tnews' for i in range(1500)]])
    return tmp_path


def write(folder, lines, encoding="utf-8"):
    data = "\n".join(lines).encode(encoding) + b"\n"
    (folder / "sts" / "stsb-dev.tsv.gz").write_bytes(gzip.compress(data))


def fails(folder, message):
    with pytest.raises(DataError, match=message) as caught:
        load_sts("STSBenchmark", "dev", folder=folder)
    assert "\n" not in str(caught.value)


def test_a_lone_quote_mark_is_text(folder):
    """csv's default quoting would swallow everything up to the next quote mark, pairs and all."""
    data = load_sts("STSBenchmark", "dev", folder=folder)
    assert len(data) == 1500
    assert data.sentences1[7] == 'he said "no 7'
    assert data.sentences2[7] == "she said 'yes"
    assert data.scores[7] == 1
    assert data.source.kind == "folder"


def test_a_missing_folder_or_file(folder, tmp_path, monkeypatch):
    fails(tmp_path / "nowhere", "data_dir: no folder .*nowhere; expected one that holds sts/ and corpus/")
    (folder / "sts" / "stsb-dev.tsv.gz").unlink()
    fails(folder, "no file .*stsb-dev.tsv.gz")
    monkeypatch.setenv("CSELAB_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="CSELAB_DATA: no folder"):
        load_sts("STSBenchmark", "dev")


def test_a_truncated_gzip(folder):
    path = folder / "sts" / "stsb-dev.tsv.gz"
    path.write_bytes(path.read_bytes()[:-200])
    fails(folder, r"stsb-dev.tsv.gz is truncated or damaged after line \d+ .*copy it again")
    path.write_bytes(b"not gzip at all")
    fails(folder, "is truncated or damaged after line 0")


def test_a_missing_column(folder):
    write(folder, ["sentence1\tsentence2\tsubset", "a\tb\tnews"])
    fails(folder, "no column 'score' in its header")


@pytest.mark.parametrize("bad", ["", "x", "nan", "-1", "5.01", "inf"])
def test_a_score_that_is_no_rating(folder, bad):
    write(folder, [HEADER, "a\tb\t3\tnews", f"a\tb\t{bad}\tnews"])
    fails(folder, f"line 3: score '{bad}' is not a number from 0 to 5")


def test_a_ragged_row(folder):
    write(folder, [HEADER, "a\tb\t3"])
    fails(folder, "line 2: 3 cells, the header has 4")


def test_not_utf8(folder):
    write(folder, [HEADER, "a\tb\t3\tnews", "caf\xe9\tb\t3\tnews"], encoding="latin-1")
    fails(folder, "line 3: not UTF-8 .byte 0xe9 at column 4.; convert the file")


def test_a_wrong_count(folder):
    write(folder, [HEADER, *["a\tb\t3\tnews"] * 1499])
    fails(folder, "has 1499 pairs, STSBenchmark dev officially has 1500")


def test_unknown_names_and_no_source(monkeypatch):
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    with pytest.raises(DataError, match="unknown task 'STS-B'; did you mean"):
        load_sts("STS-B")
    with pytest.raises(DataError, match="STS12 has no split 'dev'; it has test"):
        load_sts("STS12", "dev")
    with pytest.raises(DataError, match="SICK-R has no split 'trial'; it has train, dev, test, all"):
        load_sts("SICK-R", "trial")
    with pytest.raises(DataError, match="no 'senteval' text for SICK-R"):
        load_sts("SICK-R", text="senteval")
    with pytest.raises(DataError, match="STS12 does not ship with this project; set data_dir"):
        load_sts("STS12")


def test_the_hub_is_asked_only_when_allowed_and_fails_in_one_line(monkeypatch):
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

    def unreachable(task, split):
        raise ConnectionError("Max retries exceeded\nwith a long trace")

    monkeypatch.setattr("cselab.data.sts._hub_rows", unreachable)
    with pytest.raises(DataError, match=r"STS12 could not be fetched from the hub \(Max retries exceeded\); set data_dir"):
        load_sts("STS12", hub=True)
    monkeypatch.setattr("cselab.data.sts._hub_rows", lambda *_: (["a"] * 3108, ["b"] * 3108, [1.0] * 3108, [""] * 3108))
    assert load_sts("STS12", hub=True).source.kind == "hub"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(DataError, match="does not ship"):
        load_sts("STS12", hub=True)


def test_fingerprint_follows_the_content(folder):
    before = load_sts("STSBenchmark", "dev", folder=folder).fingerprint
    assert before == load_sts("STSBenchmark", "dev", folder=folder).fingerprint
    write(folder, [HEADER, *[f"a {i}\tb\t{i % 5}\tnews" for i in range(1500)]])
    assert before != load_sts("STSBenchmark", "dev", folder=folder).fingerprint


@pytest.mark.real_data
def test_the_seven_real_tasks_have_their_official_counts(data_dir):
    for task in STS7:
        data = load_sts(task, folder=data_dir)
        assert len(data) == COUNTS[task]
        assert 0 <= data.scores.min() < data.scores.max() <= 5
    assert len(load_sts("SICK-R", "all", folder=data_dir)) == 9927
    raw, tokens = load_sts("STS12", folder=data_dir), load_sts("STS12", folder=data_dir, text="senteval")
    assert (raw.scores == tokens.scores).all()
    assert raw.sentences1 != tokens.sentences1


@pytest.mark.real_data
def test_a_cut_copy_of_a_real_file_is_refused(data_dir, tmp_path):
    (tmp_path / "sts").mkdir()
    shutil.copy(data_dir / "sts" / "stsb-dev.tsv.gz", tmp_path / "sts")
    path = tmp_path / "sts" / "stsb-dev.tsv.gz"
    path.write_bytes(path.read_bytes()[:50_000])
    fails(tmp_path, "truncated or damaged")

"""Sources: the order folder, hub, embedded; and every unreadable file as one clear line."""

import gzip
import os
import subprocess
import sys

import pytest

from cselab.data import data_folder, load_corpus
from cselab.data.sources import read_lines
from cselab.errors import DataError


def test_reading_data_does_not_load_torch():
    """Prevents a two-second import for whoever reads a text file."""
    heavy = "{'torch', 'transformers', 'datasets'} & set(sys.modules)"
    code = f"import sys, cselab.data; cselab.data.load_sts; sys.exit(len({heavy}))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_every_public_name_resolves():
    """Prevents a lazy import of a name that has moved."""
    import cselab.data

    for name in set(cselab.data.__all__) - {"RoundTrip"}:
        assert getattr(cselab.data, name).__name__ == name if name != "STS7" else cselab.data.STS7
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cselab.data.nothing  # noqa: B018


def test_the_folder_given_comes_before_the_variable(tmp_path, monkeypatch):
    """Prevents a run on other data than was asked for."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    assert data_folder() is None
    (tmp_path / "a").mkdir()
    monkeypatch.setenv("CSELAB_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(tmp_path / "a") == tmp_path / "a"


@pytest.mark.parametrize("by", ["data_dir", "CSELAB_DATA"])
def test_a_missing_folder_says_who_named_it_and_what_it_should_hold(by, tmp_path, monkeypatch):
    """Prevents synthetic text in the place of a mistyped folder."""
    missing = str(tmp_path / "nowhere")
    monkeypatch.setenv("CSELAB_DATA", missing if by == "CSELAB_DATA" else str(tmp_path))
    with pytest.raises(
        DataError, match=rf"^{by}: no folder {missing}; a data folder holds sts/.*$"
    ):
        data_folder(missing if by == "data_dir" else None)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_only_a_line_feed_ends_a_line(name, tmp_path):
    """Prevents `str.splitlines`, which splits at U+2028 and U+0085 and shifts later lines."""
    text = "one\u2028still one\r\ntwo\u0085still two\n\nfour"
    opened = gzip.open if name.endswith("gz") else open
    with opened(tmp_path / name, "wb") as file:
        file.write(text.encode())
    lines = ["one\u2028still one", "two\u0085still two", "", "four"]
    assert list(read_lines(tmp_path / name)) == lines


LATIN = gzip.compress("fine\ncafé\n".encode("latin-1"), mtime=0)
NUMBERS = gzip.compress(b"".join(b"line %d\n" % (i * 7919) for i in range(10_000)), mtime=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (NUMBERS[:9000], r"f\.gz is truncated or damaged after line \d{3,} .*; copy it again$"),
        (NUMBERS[:500] + bytes(20) + NUMBERS[520:], r"f\.gz is truncated or damaged after line"),
        (b"plain text\n", r"f\.gz is truncated or damaged after line 0 .*; copy it again$"),
        (
            gzip.compress("fine\ncafé\n".encode("latin-1"), mtime=0),
            r"line 2: not UTF-8 \(byte 0xe9\)",
        ),
        (None, r"no file .*f\.gz; a data folder holds"),
    ],
)
def test_an_unreadable_file_is_refused_in_one_line(content, message, tmp_path):
    """Prevents a damaged file from being taken for a shorter one."""
    if content:
        (tmp_path / "f.gz").write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        list(read_lines(tmp_path / "f.gz"))
    assert "\n" not in str(caught.value)


def test_what_may_not_be_read_says_so(tmp_path, monkeypatch):
    """Prevents "no such file", and "no corpus" where there is one, for want of a permission."""
    (tmp_path / "corpus").mkdir()
    text = tmp_path / "a.txt"
    text.write_text("a sentence\n")
    for locked in (text, tmp_path / "corpus"):
        locked.chmod(0)
    monkeypatch.chdir(tmp_path)
    root = os.geteuid() == 0
    if root:  # who may read everything
        tmp_path.chmod(0o755)
        os.seteuid(65534)
    try:
        for refused in (text, "x", "a.txt"):
            with pytest.raises(DataError, match="no permission to read .*; ask its owner"):
                load_corpus(refused, folder=".")
    finally:
        if root:
            os.seteuid(0)

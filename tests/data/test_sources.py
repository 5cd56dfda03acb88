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


def test_the_folder_given_comes_before_the_variable(tmp_path, monkeypatch):
    """Prevents a run on other data than was asked for."""
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    assert data_folder() is None
    (tmp_path / "a").mkdir()
    monkeypatch.setenv("CSELAB_DATA", str(tmp_path))
    assert data_folder() == tmp_path
    assert data_folder(tmp_path / "a") == tmp_path / "a"


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_only_a_line_feed_ends_a_line(name, tmp_path):
    """Prevents `str.splitlines`, which splits at U+2028 and U+0085 and shifts later lines."""
    text = "one\u2028still one\r\ntwo\u0085still two\n\nfour"
    opened = gzip.open if name.endswith("gz") else open
    with opened(tmp_path / name, "wb") as file:
        file.write(text.encode())
    lines = ["one\u2028still one", "two\u0085still two", "", "four"]
    assert list(read_lines(tmp_path / name)) == lines


def test_a_damaged_file_is_refused_in_one_line(tmp_path):
    """Prevents a damaged file from being taken for a shorter one."""
    numbers = gzip.compress(b"".join(b"line %d\n" % (i * 7919) for i in range(10_000)), mtime=0)
    for content in (numbers[:500] + bytes(20) + numbers[520:], b"plain text\n"):
        (tmp_path / "f.gz").write_bytes(content)
        with pytest.raises(DataError, match=r"f\.gz is truncated or damaged after line \d+"):
            list(read_lines(tmp_path / "f.gz"))


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
            with pytest.raises(DataError, match="no permission to read|cannot be read"):
                load_corpus(refused, folder=".")
    finally:
        if root:
            os.seteuid(0)

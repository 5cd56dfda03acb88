"""Fixtures of the data's tests: synthetic text, generated once, and texts of one's own."""

import pytest


@pytest.fixture(scope="session")
def synthetic_text():
    """3,000 synthetic sentences."""
    from cselab.data.synthetic import sentences

    return list(sentences(3000))


@pytest.fixture
def text(tmp_path):
    """`text(lines)` writes a plain text file and gives its path."""

    def write(lines, name="own.txt"):
        (tmp_path / name).write_text("\n".join(lines), encoding="utf-8")
        return str(tmp_path / name)

    return write

"""The Wikipedia sentences that translators of Multi30k can read: every word is in its English side.

From the project's folder, with CSELAB_DATA set, for real-round-trips.toml:

    python outputs/reference/grids/wikipedia_in_vocabulary.py
"""

import re
from pathlib import Path

from cselab.data.corpus import load_corpus
from cselab.data.translation.parallel import load_parallel

TEXTS = ("wikipedia-2014", "wikipedia-2018", "wikipedia-core")
SHORTEST = 5
TARGET = Path("outputs/translators/wikipedia-in-vocabulary.txt")


def words(sentence: str) -> list[str]:
    """The words of a sentence, in lower case."""
    return re.findall(r"\w+", sentence.lower())


if __name__ == "__main__":
    known = {
        word for english, _ in load_parallel("multi30k-en-fr").pairs for word in words(english)
    }
    found = [
        text
        for text in load_corpus(TEXTS)
        if len(words(text)) >= SHORTEST and known >= {*words(text)}
    ]
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_text("\n".join(found) + "\n", encoding="utf-8")
    print(f"{len(found):,} sentences in {TARGET}")

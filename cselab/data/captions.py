"""Captions grouped by scene, as of Flickr8k, Flickr30k or Multi30k: several sentences that describe one picture."""

from pathlib import Path

from cselab.data.sources import read_lines
from cselab.errors import DataError


def load_captions(path: str | Path, *, of_each: int = 5) -> list[tuple[str, ...]]:
    """The first `of_each` captions of every scene that has so many, from a file or from all of a folder, in order of first sight.

    A line is `scene<TAB>caption`; a `#0` after the scene's name, as Flickr's files number captions, is left out. Files end in
    .tsv, .txt, .token or one of them with .gz; a first line `scene<TAB>caption` is a header.

    Raises DataError for no files, a line without a tab, and no scene with `of_each` captions.
    """
    path = Path(path).expanduser()
    kinds = (".tsv", ".txt", ".token")
    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.name.removesuffix(".gz").endswith(kinds))
    if not files:
        raise DataError(f"{path} has no files of captions; expected some that end in {', '.join(kinds)} or with .gz")
    scenes: dict[str, list[str]] = {}
    for file in files:
        for number, line in enumerate(read_lines(file), 1):
            scene, tab, caption = line.partition("\t")
            if not (tab and scene and caption.strip()):
                raise DataError(f"{file}, line {number}: expected a scene, a tab and a caption, got {line[:60]!r}")
            if (number, scene, caption) != (1, "scene", "caption"):
                scenes.setdefault(scene.partition("#")[0], []).append(caption.strip())
    groups = [tuple(captions[:of_each]) for captions in scenes.values() if len(captions) >= of_each]
    if not groups:
        most = max(map(len, scenes.values()), default=0)
        raise DataError(f"{path}: no scene has {of_each} captions, the most is {most}; give a smaller of_each")
    return groups

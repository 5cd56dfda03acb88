"""Captions grouped by picture (Flickr8k, Flickr30k, Multi30k): several sentences on one scene."""

import os
from pathlib import Path

from cselab.data.sources import file_suffix, list_files, parse_name, read_lines
from cselab.errors import DataError
from cselab.paths import expanded


def load_captions(path: str | Path, *, of_each: int = 5) -> list[tuple[str, ...]]:
    r"""Load the first `of_each` captions of every scene that has that many.

    Args:
        path: A file or a folder of files that end in .tsv, .txt, .token or one of them with .gz. A
            line is `scene<TAB>caption`; a first line of these two words is a header. A number after
            the scene's name, `#0` as in Flickr's files, is removed.
        of_each: Captions per scene.

    Raises:
        DataError: For no files, a line without a tab, and no scene with `of_each` captions.

    Examples:
        >>> from pathlib import Path
        >>> from cselab.data import load_captions
        >>> lines = ["beach#0\tA dog runs.", "beach#1\tA wet dog.", "park#0\tTwo men sit."]
        >>> _ = Path("captions.token").write_text("\n".join(lines))
        >>> load_captions("captions.token", of_each=2)
        [('A dog runs.', 'A wet dog.')]
    """
    path = expanded(parse_name(path))
    kinds = (".tsv", ".txt", ".token")
    files = [path]
    if os.path.isdir(path):
        files = [file for file in list_files(path / "*") if file_suffix(file) in kinds]
    if not files:
        raise DataError(f"{path} has no captions; expected files in {', '.join(kinds)} or .gz")
    scenes: dict[str, list[str]] = {}
    for file in files:
        for number, line in enumerate(read_lines(file), 1):
            if not line.strip():
                continue
            scene, tab, caption = line.partition("\t")
            if not (tab and scene and caption.strip()):
                raise DataError(
                    f"{file}, line {number}: expected a scene, a tab and a caption, got "
                    f"{line[:60]!r}"
                )
            if (number, scene, caption) != (1, "scene", "caption"):
                scenes.setdefault(scene.partition("#")[0], []).append(caption.strip())
    groups = [tuple(captions[:of_each]) for captions in scenes.values() if len(captions) >= of_each]
    if not groups:
        most = max(map(len, scenes.values()), default=0)
        raise DataError(
            f"{path}: no scene has {of_each} captions, the most is {most}; give a smaller of_each"
        )
    return groups

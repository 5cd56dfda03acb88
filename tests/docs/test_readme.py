"""Every snippet and command of the README and the tutorials runs."""

import re
import shlex
from pathlib import Path

import pytest

from cselab import cli

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
SMALL = {"steps": 2, "sentences": 200, "dev_pairs": 20, "synthetic_pairs": 40}
"""Added to snippets and commands that train: two steps, few pairs."""
QUICK = [word for name, value in SMALL.items() for word in ("-p", f"{name}={value}")]
OF_TOWERS = ["-p", "towers.steps=2"]
ELSEWHERE = (
    "--profile paper",
    "profile=paper",
    "jtcse-9",
    "--scheduler",
    "/shared/",
    "outputs/steps/",
)
"""Commands for the hub, a cluster, other folders; tests/hub and tests/experiments run such ones."""


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(encoding="utf-8"), re.S)


def commands(page: Path) -> list[str]:
    """The lines of a page that call cselab on this machine."""
    lines = [
        line.partition(" #")[0].strip()
        for block in blocks(page, "sh")
        for line in block.splitlines()
    ]
    ours = [line for line in lines if line.startswith("cselab ")]
    return [line for line in ours if not any(part in line for part in ELSEWHERE)]


@pytest.fixture
def folder(tmp_path, monkeypatch, own_registry):
    """The folder of a stranger: no data folder, outputs of its own, the files of the pages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CSELAB_OUTPUTS", str(tmp_path / "outputs"))
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    for block in (block for page in TUTORIALS for block in blocks(page, "python")):
        if name := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / name[1]).write_text(block)
    return tmp_path


@pytest.mark.slow  # trains
def test_the_snippets_of_each_page_run_in_order(folder, capsys):
    """Prevents a first page whose lines fail when they are copied."""
    for page in (README, *TUTORIALS):
        code = "\n".join(block for block in blocks(page, "python") if not block.startswith("# "))
        quick = {**SMALL, "towers.steps": 2}
        code = re.sub(r'open_lab\(("\w+")\)', rf"open_lab(\1, **{quick})", code)
        exec(compile(code, page.stem, "exec"), {"__name__": "__main__"})
        assert bool(capsys.readouterr().out) == bool(code), page.stem


@pytest.mark.slow
def test_the_commands_of_each_page_run_in_order(folder):
    """Prevents a command with an option that is gone, and a report of a sweep that the page does
    not make."""
    for command in dict.fromkeys(line for page in (README, *TUTORIALS) for line in commands(page)):
        words = ["1-2" if word == "1-5" else word for word in shlex.split(command)]  # fewer seeds
        quick = QUICK if words[1] in ("run", "train", "sweep") else []
        if quick and ("jtcse" in words or words[1] == "run"):
            quick = [*QUICK, *OF_TOWERS]
        assert cli.app([*words[1:], *quick], standalone_mode=False) in (None, 0), command
        made = {"sweep": "sweep.sqlite", "report": "report/index.html"}
        if words[1] in made:  # not in the project's own outputs
            assert (folder / "outputs" / made[words[1]]).is_file()

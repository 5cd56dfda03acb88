"""Every snippet and command of the README and the tutorials runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
SMALL = {"steps": 2, "sentences": 200, "dev_pairs": 20, "synthetic_pairs": 40}
"""Added to snippets and commands that train: two steps, few pairs."""
QUICK = [word for name, value in SMALL.items() for word in ("-p", f"{name}={value}")]
OF_TOWERS = ["-p", "towers.steps=2"]
ELSEWHERE = ("--profile paper", "profile=paper", "--scheduler", "/shared/", "outputs/steps/")
"""Commands for the hub, a cluster, other folders; tests/hub and tests/sweep run such ones."""


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


WITH_COMMANDS = [page for page in (README, *TUTORIALS) if commands(page)]


def environment(folder: Path, monkeypatch) -> None:
    """The folder of a stranger: no data folder, outputs of its own, this cselab on the path."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CSELAB_OUTPUTS", str(folder / "outputs"))
    monkeypatch.delenv("CSELAB_DATA", raising=False)
    for block in (block for page in TUTORIALS for block in blocks(page, "python")):
        if name := re.match(r"# (\w+\.py)\n", block):
            (folder / name[1]).write_text(block)


@pytest.mark.slow  # trains
def test_the_snippets_of_each_page_run_in_order(tmp_path, monkeypatch):
    """Prevents a first page whose lines fail when they are copied. All pages share what is trained,
    so one test runs them all."""
    environment(tmp_path, monkeypatch)
    for page in (README, *TUTORIALS):
        code = "\n".join(block for block in blocks(page, "python") if not block.startswith("# "))
        quick = {**SMALL, "towers.steps": 2}
        code = re.sub(r'open_lab\(("\w+")\)', rf"open_lab(\1, **{quick})", code)
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert found.returncode == 0, page.stem + found.stderr[-2000:]
        assert bool(found.stdout) == bool(code), page.stem


@pytest.mark.slow
@pytest.mark.parametrize("page", [pytest.param(p, id=p.name) for p in WITH_COMMANDS])
def test_the_commands_of_a_page_run_in_order(page, tmp_path, monkeypatch):
    """Prevents a command with an option that is gone, and a report of a sweep that the page does
    not make."""
    environment(tmp_path, monkeypatch)
    for command in dict.fromkeys(commands(page)):
        words = ["1-2" if word == "1-5" else word for word in shlex.split(command)]  # fewer seeds
        quick = QUICK if words[1] in ("run", "train", "sweep") else []
        if quick and ("jtcse" in words or words[1] == "run"):
            quick = [*QUICK, *OF_TOWERS]
        done = subprocess.run(
            [sys.executable, "-m", *words, *quick], capture_output=True, text=True
        )
        assert done.returncode == 0, (command, (done.stdout + done.stderr)[-2000:])
        made = {"sweep": "sweep.sqlite", "report": "report/index.html"}
        if words[1] in made:  # not in the project's own outputs
            assert (tmp_path / "outputs" / made[words[1]]).is_file()

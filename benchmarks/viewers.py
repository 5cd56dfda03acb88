"""One page of attention by cselab, bertviz and circuitsvis: `python benchmarks/viewers.py`.

Each tool's own code writes one HTML file with the attention of a model of the shape of BERT-base on
a sentence (cselab: of two such models). The file is opened in a browser without a network. Writes
the sizes, what was drawn and the browser's errors to outputs/reference/viewers.json. circuitsvis is
not among the project's dependencies: `pip install --no-deps circuitsvis`.
"""

import json
import tempfile
from importlib.metadata import version
from pathlib import Path

import bertviz
import torch
from circuitsvis.attention import attention_heads
from playwright.sync_api import Browser, sync_playwright
from timing import TINY
from transformers import BertConfig, BertModel

from cselab.cli import doctor
from cselab.experiments.environment import environment_stamp
from cselab.models import SentenceEncoder, load_tokenizer
from cselab.paths import project_path
from cselab.workbook.headless.page import write_widget
from cselab.workbook.widgets import AttentionInspector

RESULTS = project_path("outputs/reference/viewers.json")
SENTENCE = "A man in a red shirt is playing the guitar on a stage while two dogs run after a ball."
MARKS = "() => document.querySelectorAll('svg *, canvas').length"


def main() -> None:
    torch.manual_seed(1)
    tokenizer = load_tokenizer(TINY)
    shape = BertConfig(vocab_size=len(tokenizer))
    encoders = {name: SentenceEncoder(BertModel(shape).eval(), tokenizer) for name in ("A", "B")}
    inspector = AttentionInspector(encoders, SENTENCE)
    reading = inspector.read("A", SENTENCE)
    attention, tokens = list(reading.trace.attention), list(reading.tokens)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        options = {"executable_path": doctor.browser(), "args": ["--no-sandbox"]}
        chromium = playwright.chromium.launch(**options)
        pages = {name: Path(folder) / f"{name}.html" for name in ("cselab", "bertviz", "circuits")}
        write_widget(pages["cselab"], "cselab", inspector.saved())
        view = bertviz.model_view(attention, tokens, html_action="return")
        pages["bertviz"].write_text(view.data, encoding="utf-8")
        heads = attention_heads(attention=attention[0][0], tokens=tokens)  # one layer is its most
        pages["circuits"].write_text(heads.local_src, encoding="utf-8")
        measured = {name: opened(chromium, page) for name, page in pages.items()}
        machine = environment_stamp(torch.device("cpu")) | {"browser": chromium.version}
    measured["bertviz"]["version"] = version("bertviz")
    measured["circuits"]["version"] = version("circuitsvis")
    result = {"machine": machine, "tokens": len(tokens), "pages": measured}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(RESULTS.read_text())


def opened(chromium: Browser, path: Path) -> dict:
    """A page's size in bytes, what it draws offline, and its errors."""
    context = chromium.new_context(offline=True)
    page, errors = context.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error).splitlines()[0]))
    page.goto(path.as_uri())
    page.wait_for_timeout(3000)
    marks = page.evaluate(MARKS)
    context.close()
    return {"bytes": path.stat().st_size, "marks": marks, "errors": errors}


if __name__ == "__main__":
    main()

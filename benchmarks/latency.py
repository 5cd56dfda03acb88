"""How long each control of the widgets takes in a browser: `python benchmarks/latency.py`.

Every control of every widget is changed 20 times in a page without a kernel, and timed from the
event to the frame that shows the change. Prints the median and the worst in milliseconds, with the
shipped backbone and, for the attention inspector, with the shape of BERT-base on 60 tokens.
"""

import statistics
import tempfile
from pathlib import Path

from browsers import browser
from transformers import BertConfig, BertModel

from cselab.methods import create, registered
from cselab.models import SentenceEncoder, TwinEncoder, load_backbone, load_tokenizer
from cselab.workbook.headless.page import write_widget
from cselab.workbook.widgets import AttentionInspector, CaelExplorer, LossPlayground, NormExplorer
from cselab.workbook.widgets.widget import Widget

BACKBONE = Path(__file__).resolve().parents[1] / "data" / "backbones" / "tiny-bert"
SENTENCE = "A man in a red shirt is playing the guitar on a stage."
OTHER = "Two dogs run after a ball in the park."
TIMES = 20
TIMED = """async (control, [times, kind]) => {
  const shown = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  const found = [];
  for (let n = 0; n < times; n++) {
    await new Promise((done) => setTimeout(done, 60));
    const began = performance.now();
    if (kind === "select") {
      control.selectedIndex = (control.selectedIndex + 1) % control.length;
      control.dispatchEvent(new Event("change"));
    } else if (kind === "range") {
      const [low, high] = [Number(control.min), Number(control.max)];
      control.value = low + ((n % 4) + 1) * (high - low) / 5;
      control.dispatchEvent(new Event("input"));
    } else control.click();
    await shown();
    found.push(performance.now() - began);
  }
  return found;
}"""


def widgets() -> dict[str, Widget]:
    """The widgets that are timed, by name."""
    tokenizer = load_tokenizer(BACKBONE)
    towers = [load_backbone(BACKBONE) for _ in range(2)]
    twin = TwinEncoder(*towers, cael=(2, 4, 6), tokenizer=tokenizer)
    encoders = {"backbone": SentenceEncoder(load_backbone(BACKBONE), tokenizer), "twin": twin}
    shape = BertConfig(vocab_size=towers[0].config.vocab_size)
    base = {name: SentenceEncoder(BertModel(shape).eval(), tokenizer) for name in ("one", "two")}
    jtcse = create(registered("jtcse").Config(caels=1), folders=[BACKBONE] * 2)
    return {
        "inspector": AttentionInspector(encoders, SENTENCE, [(SENTENCE, OTHER)]),
        "inspector, 12 × 12 heads, 60 tokens": AttentionInspector(base, f"{SENTENCE} {OTHER} " * 3),
        "norms": NormExplorer(encoders, [SENTENCE, OTHER] * 50),
        "CAELs": CaelExplorer(towers[0].config),
        "playground": LossPlayground(jtcse),
    }


def main() -> None:
    """Print a table of the controls."""
    with tempfile.TemporaryDirectory() as folder, browser() as opened:
        print("| widget | control | median (ms) | worst of 20 |\n|---|---|---|---|")
        for name, widget in widgets().items():
            page = opened.new_page(viewport={"width": 1280, "height": 900})
            path = write_widget(Path(folder) / "widget.html", name, widget.saved())
            page.goto(path.as_uri())
            root = page.locator(".cselab")
            root.locator("svg").first.wait_for()
            for control, kind, locator in _controls(root):
                times = locator.evaluate(TIMED, [TIMES, kind])
                print(f"| {name} | {control} | {statistics.median(times):.0f} | {max(times):.0f} |")
            page.close()


def _controls(root):
    """(name, kind, control) of all that can be changed; of many buttons of one kind the first."""
    seen = set()
    for kind, selector in (
        ("select", "select:not([multiple])"),
        ("range", "input[type=range]"),
        ("click", "input[type=checkbox]"),
        ("click", "button"),
    ):
        for control in root.locator(selector).all():
            if not control.is_visible() or not control.is_enabled():
                continue
            text = "e => e.getAttribute('aria-label') ?? (e.labels?.[0] ?? e).textContent"
            name = control.evaluate(text).strip()
            sort = control.get_attribute("class") or name
            if sort not in seen:
                seen.add(sort)
                yield name, kind, control


if __name__ == "__main__":
    main()

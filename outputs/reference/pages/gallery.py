"""The pictures of docs/how-to/widgets.md: `python outputs/reference/pages/gallery.py` draws the
widgets of profile `tiny` in a browser, and writes outputs/reference/gallery/*.png."""

from pathlib import Path

from pictures import draw_widgets

from cselab import open_lab
from cselab.methods import create
from cselab.workbook import widgets

GALLERY = Path(__file__).resolve().parents[1] / "gallery"
SENTENCE = "This is an example sentence for visualizing attention scores."


def main() -> None:
    """Train what the pictures show, and draw them."""
    lab = open_lab("gallery")
    encoders = {
        "backbone": lab.pretrained(),
        "tower I": lab.towers()[0].encoder,
        "TNCSE": lab.train("tncse").encoder,
        "JTCSE": lab.train("jtcse").encoder,
    }

    def some(*names: str) -> dict:
        return {name: encoders[name] for name in names}

    inspector = widgets.AttentionInspector(some("backbone", "JTCSE"), SENTENCE)
    inspector.layer, inspector.hide_special = 3, True
    norms = widgets.NormExplorer(some("backbone", "tower I"), lab.data.sentences(100))
    norms.removed = 2
    backbone = str(lab.data.model_folder("tiny-bert"))
    playground = widgets.LossPlayground(
        create("jtcse", lab.config("jtcse"), [backbone, backbone])  # towers before their training
    )
    playground.descend(150)
    shown = {
        "attention": inspector,
        "norms": norms,
        "caels": widgets.CaelExplorer(encoders["backbone"].backbone.config),
        "playground": playground,
    }
    draw_widgets(shown, GALLERY)


if __name__ == "__main__":
    main()

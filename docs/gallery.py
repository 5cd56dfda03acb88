"""The pictures of docs/how-to/widgets.md, `outputs/reference/gallery/*.png`: `python
docs/gallery.py` draws the widgets of profile `tiny` anew, in a browser."""

from pathlib import Path

from pictures import draw_widgets

from cselab import open_lab, widgets
from cselab.methods import create

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "outputs" / "reference" / "gallery"
SENTENCE = "This is an example sentence for visualizing attention scores."


def main() -> None:
    """Train what the pictures show, and draw them."""
    lab = open_lab("gallery", outputs=ROOT / "outputs")
    encoders = {
        "backbone": lab.untrained(),
        "SimCSE, tower I": lab.towers()[0].encoder,
        "TNCSE": lab.train("tncse").encoder,
        "JTCSE": lab.train("jtcse").encoder,
    }

    def some(*names: str) -> dict:
        return {name: encoders[name] for name in names}

    inspector = widgets.AttentionInspector(some("backbone", "JTCSE"), SENTENCE)
    inspector.layer, inspector.hide_special = 3, True
    norms = widgets.NormExplorer(some("backbone", "SimCSE, tower I"), lab.sentences(100))
    norms.removed = 2
    backbone = str(lab.session.model_folder("tiny-bert"))
    playground = widgets.LossPlayground(
        create("jtcse", lab.config("jtcse"), [backbone, backbone])  # towers before their training
    )
    playground.descend(150)
    shown = {
        "attention": inspector,
        "norms": norms,
        "caels": widgets.CaelExplorer(encoders["backbone"].backbone.config),
        "playground": playground,
        "runs": widgets.RunComparer(lab.finished_runs()),
    }
    draw_widgets(shown, GALLERY)


if __name__ == "__main__":
    main()

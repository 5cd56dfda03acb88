"""The README's pictures, `outputs/reference/gallery/*.png`: `python docs/gallery.py` draws the
plots and widgets of profile `tiny` anew, in a browser."""

from pathlib import Path

from pictures import draw, draw_widgets

from cselab import open_lab, plots, widgets
from cselab.methods import create

ROOT = Path(__file__).resolve().parents[1]
GALLERY = ROOT / "outputs" / "reference" / "gallery"
SENTENCE = "This is an example sentence for visualizing attention scores."


def main() -> None:
    """Train what the pictures show, and draw them."""
    plots.use_theme()
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
    reports = lab.evaluate(encoders)
    phenomena = {name: lab.phenomena(encoders[name], reports[name]) for name in encoders}
    title = "Spearman × 100 by what was changed in a pair of the synthetic STS"
    draw_widgets(shown, GALLERY)
    draw({"phenomena": plots.score_heatmap(phenomena, title=title)}, GALLERY)


if __name__ == "__main__":
    main()

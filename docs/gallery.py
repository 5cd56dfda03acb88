"""The README's pictures, `outputs/reference/gallery/*.png`: `python docs/gallery.py` draws the
plots and widgets of profile `tiny` anew, in a browser."""

from pathlib import Path

import plotly.graph_objects as go
from pictures import draw

from cselab import open_lab, plots, widgets
from cselab.methods import create

ROOT = Path(__file__).resolve().parents[1]
SENTENCE = "This is an example sentence for visualizing attention scores."


def figures() -> dict[str, go.Figure]:
    """The pictures by the names of their files."""
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

    norms = widgets.NormExplorer(some("backbone", "SimCSE, tower I"), lab.sentences(100))
    norms.controls["removed"].value = 2
    backbone = str(lab.session.model_folder("tiny-bert"))
    playground = widgets.LossPlayground(
        create("jtcse", lab.config("jtcse"), [backbone, backbone])  # towers before their training
    )
    playground.descend(150)
    reports = lab.evaluate(encoders)
    phenomena = {name: lab.phenomena(encoders[name], reports[name]) for name in encoders}
    return {
        "attention": widgets.AttentionInspector(some("backbone", "JTCSE"), SENTENCE).static(),
        "norms": norms.static(),
        "caels": widgets.CaelExplorer(encoders["backbone"].backbone.config).static(),
        "playground": playground.static(),
        "runs": widgets.RunComparer(lab.finished_runs()).static(),
        "phenomena": plots.score_heatmap(
            phenomena, title="Spearman × 100 by what was changed in a pair of the synthetic STS"
        ),
    }


if __name__ == "__main__":
    draw(figures(), ROOT / "outputs" / "reference" / "gallery")

"""The README's pictures, `outputs/reference/gallery/*.png`: `python tests/reference/gallery.py` draws tiny's views anew."""

from pathlib import Path

import plotly.graph_objects as go
from pictures import draw

from cselab import open_lab, stages, views
from cselab.methods import create

ROOT = Path(__file__).resolve().parents[2]
SENTENCE = "This is an example sentence for visualizing attention scores."


def figures() -> dict[str, go.Figure]:
    lab = open_lab("gallery", outputs=ROOT / "outputs")
    base = stages.backbone(lab)
    encoders = {
        "backbone": stages.backbone_encoder(lab), "SimCSE, tower I": stages.tower(lab, "i").encoder,
        "TNCSE": stages.joint(lab, "tncse").encoder, "JTCSE": stages.joint(lab, "jtcse").encoder,
    }  # fmt: skip
    inspector = views.AttentionInspector({name: encoders[name] for name in ("backbone", "JTCSE")}, SENTENCE, [])
    norms = views.NormExplorer(
        {name: encoders[name] for name in ("backbone", "SimCSE, tower I")}, list(stages.sentences(lab))[:100]
    )
    norms.controls["removed"].value = 2
    playground = views.LossPlayground(create("jtcse", lab.settings, [base, base]))
    playground.descend(150)
    reports = {name: stages.evaluate(lab, name, encoder.encode) for name, encoder in encoders.items()}
    phenomena = {name: stages.phenomena(lab, encoder.encode, reports[name]) for name, encoder in encoders.items()}
    return {
        "attention": inspector.static(),
        "norms": norms.static(),
        "caels": views.CaelExplorer(encoders["backbone"].backbone.config).static(),
        "playground": playground.static(),
        "runs": views.RunComparer(stages.finished(lab)).static(),
        "phenomena": views.score_heatmap(phenomena, title="Spearman × 100 by what was changed in a pair of the world"),
    }


if __name__ == "__main__":
    draw(figures(), ROOT / "outputs" / "reference" / "gallery")

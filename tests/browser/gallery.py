"""The README's pictures, `outputs/reference/gallery/*.png`: `python tests/browser/gallery.py` draws the views of the tiny profile anew."""

import io
import shutil
import tempfile
from pathlib import Path

import plotly.graph_objects as go
from PIL import Image
from playwright.sync_api import sync_playwright

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


def main(folder: Path = ROOT / "outputs" / "reference" / "gallery") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as pages:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--use-gl=swiftshader"]
        )
        page = browser.new_page(viewport={"width": 1100, "height": 500})
        for name, figure in figures().items():
            figure.write_html(Path(pages) / f"{name}.html", full_html=True)
            page.goto(f"file://{pages}/{name}.html")
            page.wait_for_selector(".main-svg")
            page.wait_for_timeout(1500)  # WebGL draws after the page is there
            picture = Image.open(io.BytesIO(page.locator(".plot-container").screenshot()))
            picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=256).save(folder / f"{name}.png", optimize=True)
        browser.close()


if __name__ == "__main__":
    main()

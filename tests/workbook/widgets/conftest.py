"""Encoders and a playground, as the widgets take them."""

import json
import subprocess
from pathlib import Path

import pytest
from desk import Desk

from cselab.methods import create, registered
from cselab.methods.simcse import SimCSE
from cselab.models import SentenceEncoder, TwinEncoder
from cselab.workbook.browser import bundle
from cselab.workbook.widgets import LossPlayground


@pytest.fixture(scope="package")
def encoders(make_bert, word_tokenizer):
    """A single tower, and a twin with a cross-attention layer at 2 and 4 of 4."""
    twin = TwinEncoder(make_bert(2), make_bert(3), cael=(2, 4), tokenizer=word_tokenizer)
    return {"one": SentenceEncoder(make_bert(1), word_tokenizer).eval(), "twin": twin.eval()}


@pytest.fixture
def playground(small_backbone):
    """Of a twin with one cross-attention layer."""
    config = registered("jtcse").Config(caels=1)
    return LossPlayground(create(config, folders=[small_backbone] * 2))


@pytest.fixture
def own_playground(small_pretrained):
    """`own_playground(["mine", "nce"], mine=term(function))`: of a SimCSE with own members."""

    def build(terms, **members):
        class Mine(SimCSE):
            class Config(SimCSE.Config):
                pass

            vars().update(members)

        return LossPlayground(Mine.build(Mine.Config(terms=terms), [small_pretrained]))

    return build


@pytest.fixture(scope="session")
def run_js():
    """Run a script after one of the widgets' modules, in the Node of playwright's package:
    `run_js("losses", "const result = 2 * given;", 21)`."""
    driver = pytest.importorskip("playwright._impl._driver", reason="its package has a Node")

    def run(module, script, given):
        code = f"""
            import {{ readFileSync }} from "node:fs";
            {bundle(module).replace("export default { render };", "")}
            const given = JSON.parse(readFileSync(0));
            {script}
            process.stdout.write(JSON.stringify(result));"""
        done = subprocess.run(
            [driver.compute_driver_executable()[0], "--input-type=module", "-e", code],
            input=json.dumps(given),
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture
def visit(browser):
    """`visit(page, 900, "dark")`: a page of `write_widget` in the browser, its widget's root,
    and all that the browser says or asks the network for."""
    opened = []

    def go(path: Path, width: int = 1280, scheme: str = "light"):
        page = browser.new_page(
            viewport={"width": width, "height": 1000}, color_scheme=scheme, reduced_motion="reduce"
        )
        opened.append(page)
        said: list[str] = []
        page.on("console", lambda line: said.append(line.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda asked: said.append(asked.url) if remote(asked.url) else None)
        page.goto(path.as_uri())
        root = page.locator(".cselab")
        root.locator("svg[role=img]").first.wait_for()
        page.wait_for_timeout(200)
        return page, root, said

    yield go
    for page in opened:
        page.close()


@pytest.fixture
def make_desk(browser):
    """`make_desk(widget)`: a `Desk`; the browser may not raise anything."""
    desks = []

    def build(widget, **options):
        page = browser.new_page(viewport={"width": 900, "height": 1000}, reduced_motion="reduce")
        desks.append(Desk(page, widget, **options))
        return desks[-1]

    yield build
    for desk in desks:
        desk.page.close()
        assert desk.said == []


def remote(url: str) -> bool:
    return url.startswith(("http:", "https:", "ws:"))

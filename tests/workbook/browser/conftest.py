"""A real JupyterLab in a headless Chromium."""

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import nbformat
import pytest
from jupyterlab_page import IDLE, STATUS, TOKEN

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory) -> Iterator[tuple[str, Path]]:
    """Address and folder of a running JupyterLab of this interpreter."""
    home = tmp_path_factory.mktemp("jupyterlab")
    settings = home / "settings" / "@jupyterlab" / "notebook-extension"
    settings.mkdir(parents=True)
    all_cells_in_the_page = json.dumps({"windowingMode": "none"})
    (settings / "tracker.jupyterlab-settings").write_text(all_cells_in_the_page)
    (home / "notebooks").mkdir()
    folders = {
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTER_CONFIG_DIR": "config",
        "IPYTHONDIR": "ipython",
        "CSELAB_OUTPUTS": "outputs",
    }
    environment = {key: value for key, value in os.environ.items() if key != "CSELAB_RUN_DIR"}
    environment |= {name: str(home / folder) for name, folder in folders.items()}
    options = [
        "--no-browser",
        "--allow-root",
        "--ServerApp.port=0",
        "--expose-app-in-browser",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={home / 'notebooks'}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    ]
    log = (home / "server.log").open("w")
    command = [sys.executable, "-m", "jupyterlab", *options]
    server = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=home)
    try:
        yield _address(home, server), home / "notebooks"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()


def _address(home: Path, server: subprocess.Popen) -> str:
    for _ in range(240):
        for path in (home / "runtime").glob("jpserver-*.json"):
            try:
                url = json.loads(path.read_text())["url"]
                urllib.request.urlopen(f"{url}api?token={TOKEN}", timeout=5).close()
                return url
            except (OSError, ValueError):
                pass  # half-written, or not up yet
        if server.poll() is not None:
            break
        time.sleep(0.5)
    pytest.fail("JupyterLab did not start:\n" + (home / "server.log").read_text()[-2000:])


@pytest.fixture
def open_notebook(browser, jupyterlab) -> Iterator[Callable]:
    """`open_notebook("06_attention_and_norms", sentences=300)`: all its cells run in JupyterLab;
    gives the page, and a list of the errors in the browser's console. `until_idle=False`: gives
    them while the cells run. `cells`: a notebook of these cells."""
    from papermill.iorw import load_notebook_node
    from papermill.parameterize import parameterize_notebook

    url, folder = jupyterlab
    pages = []

    def opened(name: str, *, until_idle: bool = True, cells: Sequence[str] = (), **parameters):
        if cells:
            spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            notebook = nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(cell) for cell in cells],
                metadata={"kernelspec": spec},
            )
        else:
            notebook = load_notebook_node(str(ROOT / "notebooks" / f"{name}.ipynb"))
            notebook = parameterize_notebook(notebook, parameters)
        nbformat.write(notebook, folder / f"{name}.ipynb")
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        pages.append(page)
        errors: list[str] = []
        page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{url}lab/tree/{name}.ipynb?token={TOKEN}&reset")
        page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=120_000)
        page.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=120_000)
        errors.clear()
        page.set_default_timeout(300_000)
        run_all = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells') }"
        page.evaluate(run_all)
        page.wait_for_selector(f"{STATUS}[data-status=busy]", state="attached")
        if until_idle:
            page.wait_for_selector(IDLE, state="attached")
        return page, errors

    yield opened
    for page in pages:
        page.close()

"""A page that stands in for JupyterLab: views of a widget, with Python's widget as its kernel."""

import json
from pathlib import Path

from comm import DummyComm

from cselab.workbook.browser import STYLE, bundle

DESK = (Path(__file__).parent / "desk.js").read_text()


class Desk:
    """Views of a widget in a page; a busy kernel answers when it is released."""

    def __init__(self, page, widget, *, busy: bool = False):
        self.page, self.widget, self.said = page, widget, []
        widget.comm = DummyComm()  # without a kernel, ipykernel's would send nothing
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.set_content('<body data-jp-theme-light="true"><div id="a"></div><div id="b"></div>')
        page.add_style_tag(content=STYLE)
        page.expose_function("kernel", self._answer)
        page.add_script_tag(content=DESK)
        script = bundle(widget.script).replace("export default { render };", "")
        page.add_script_tag(content=f"{script}\nglobalThis.draw = render;", type="module")
        state = widget.get_state([name for name in widget.keys if name[0] != "_"])
        state = {name: value for name, value in state.items() if name not in ("layout", "tabbable")}
        start = "([state, busy]) => { globalThis.desk = makeDesk(state); desk.busy = busy; }"
        page.evaluate(start, [state, busy])
        self.root = self.open("a")

    def open(self, name):
        page = self.page
        page.evaluate("id => draw({ model: desk.model, el: document.getElementById(id) })", name)
        root = page.locator(f"#{name} .cselab")
        root.wait_for()
        page.wait_for_timeout(200)
        return root

    def release(self) -> list[dict]:
        """Let the kernel answer, and return the questions that were asked."""
        self.page.evaluate("desk.release()")
        self.page.wait_for_timeout(200)
        sent = self.page.evaluate("desk.sent.splice(0)")
        return [one["message"] for one in sent if "message" in one]

    def _answer(self, text):
        asked, sent = json.loads(text), []
        self.widget._send = lambda message, buffers=None: sent.append(message)
        if "state" in asked:
            self.widget.set_state(asked["state"])
        else:
            self.widget._hear(self.widget, asked["message"], [])
        return _as_sent([one for one in sent if one["method"] != "echo_update"])

    def python(self, do):
        """Run a cell, and give its messages to the browser."""
        sent = []
        self.widget._send = lambda message, buffers=None: sent.append(message)
        do()
        self.page.evaluate("sent => desk.hear(sent)", _as_sent(sent))
        self.page.wait_for_timeout(100)


def _as_sent(value):
    """As a comm sends it: JSON has no NaN."""
    return json.loads(json.dumps(value, allow_nan=False))

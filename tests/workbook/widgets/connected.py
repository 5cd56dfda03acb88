"""A widget in a browser and its kernel, which hear each other when a test says so."""

import json

from cselab.workbook.browser import STYLE, bundle
from cselab.workbook.widgets import Widget

RENDER = """async ({ source, state }) => {
  const listeners = new Map();
  const fire = (event, value) => {
    for (const listener of listeners.get(event) ?? []) listener(value);
  };
  window.asked = [];
  window.model = {
    fire,
    get: (name) => state[name],
    set(name, value) {
      state[name] = value;
      fire(`change:${name}`);
    },
    on: (event, listener) => listeners.set(event, [...(listeners.get(event) ?? []), listener]),
    off: (event, gone) =>
      listeners.set(event, (listeners.get(event) ?? []).filter((one) => one !== gone)),
    send: (question) => asked.push(question),
    save_changes() {},
  };
  const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const { default: widget } = await import(address);
  widget.render({ model, el: document.getElementById("widget") });
}"""


class Connected:
    """A widget that is drawn; the kernel hears the browser's questions in `answer`, and the
    browser what the kernel has changed or sent in `tell`."""

    def __init__(self, browser, monkeypatch, widget: Widget, width: int = 900):
        self.widget, self.news = widget, []
        monkeypatch.setattr(widget, "send", lambda message: self._note("msg:custom", message))
        widget.observe(lambda change: self._note(change.name, change.new))
        self.page = browser.new_page(viewport={"width": width, "height": 1000})
        self.said: list[str] = []
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        style = f"<style>{STYLE}</style>"
        self.page.set_content(f"{style}<main class='notebook'><div id='widget'></div></main>")
        state = Widget.page_state(widget) | {"kernel": True}
        self.page.evaluate(RENDER, {"source": bundle(widget.script), "state": _sent(state)})
        self.root = self.page.locator(".cselab")
        self.page.wait_for_timeout(100)

    def answer(self) -> list[dict]:
        """The browser's questions, which the kernel has answered."""
        questions = self.page.evaluate("asked.splice(0)")
        for question in questions:
            self.widget._handle_custom_msg(question, [])
        self.tell()
        return questions

    def tell(self) -> None:
        """Let the browser hear the kernel."""
        news, self.news = self.news, []
        for name, value in news:
            how = "fire" if name == "msg:custom" else "set"
            self.page.evaluate(f"([name, value]) => model.{how}(name, value)", [name, value])
        self.page.wait_for_timeout(100)

    def _note(self, name: str, value) -> None:
        if name == "msg:custom" or name in self.widget.keys:
            self.news.append((name, _sent(value)))


def _sent(value):
    """As a comm sends it: JSON has no NaN."""
    return json.loads(json.dumps(value, allow_nan=False))

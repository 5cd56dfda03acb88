"""bertviz's head and model views of what the attention inspector has computed."""

import os
from typing import Literal
from urllib.request import urlopen

from IPython.display import HTML, display

from cselab.views.attention import AttentionInspector

SCRIPTS = "https://cdnjs.cloudflare.com/ajax/libs/require.js/2.3.6/require.min.js"
"""bertviz's pages load this, d3 and jQuery from the network."""


def show_bertviz(inspector: AttentionInspector, kind: Literal["head", "model"] = "head") -> None:
    """Model A's attention on the inspector's sentence in bertviz (Vig 2019); without a network, or in a headless run, whose page
    must open offline, the inspector's own figure, and the reason."""
    if "CSELAB_RUN_DIR" in os.environ or not _online():
        print(
            "bertviz loads its scripts from the network, which a page that opens offline cannot; our own view of the same:"
        )
        display(inspector.static())
        return
    import bertviz

    values = inspector.values
    reading = inspector.read(values["model_a"], values["sentence"])
    view = {"head": bertviz.head_view, "model": bertviz.model_view}[kind]
    tokens = [token.replace("</", "<\u200b/") for token in reading.tokens]  # would end the script that carries it
    page = view(list(reading.own.attention), tokens, html_action="return")
    display(HTML(page.data))


def _online() -> bool:
    try:
        with urlopen(SCRIPTS, timeout=3):
            return True
    except OSError:
        return False

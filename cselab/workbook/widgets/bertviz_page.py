"""bertviz's head and model views of the attention inspector's attention."""

import os
from typing import Literal
from urllib.request import urlopen

from IPython.display import HTML, display

from cselab.workbook.widgets.attention import AttentionInspector

SCRIPTS = "https://cdnjs.cloudflare.com/ajax/libs/require.js/2.3.6/require.min.js"
"""bertviz's pages load this script, d3 and jQuery from the network."""


def show_bertviz(inspector: AttentionInspector, kind: Literal["head", "model"] = "head") -> None:
    """Show model A's attention on the inspector's sentence in bertviz.

    Vig 2019, https://arxiv.org/abs/1906.05714. Without a network, and in a headless run (whose page
    must open offline), it prints the reason: the inspector shows the same maps.

    Args:
        kind: "head": one layer, lines between tokens; "model": all layers and heads.
    """
    if "CSELAB_RUN_DIR" in os.environ or not _online():
        print("bertviz needs the network for its scripts; the inspector shows the same maps")
        return
    import bertviz

    reading = inspector.read(inspector.model_a, inspector.sentence)
    view = {"head": bertviz.head_view, "model": bertviz.model_view}[kind]
    # "</" would end the script that contains the tokens
    tokens = [token.replace("</", "<\u200b/") for token in reading.tokens]
    page = view(list(reading.trace.attention), tokens, html_action="return")
    display(HTML(page.data))


def _online() -> bool:
    try:
        with urlopen(SCRIPTS, timeout=3):
            return True
    except OSError:
        return False

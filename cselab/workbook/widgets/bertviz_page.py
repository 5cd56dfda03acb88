"""bertviz's head and model views of the attention inspector's attention, without a network."""

from typing import Literal

from IPython.display import HTML, display

from cselab.workbook.browser import FOLDER
from cselab.workbook.widgets.attention import AttentionInspector

# d3 and jQuery see no module system but this function's, whatever the page has
OPEN = """<script>(function(){
const $j=(function(module,exports,define){%s
return module.exports})({exports:{}});
const D=(function(exports,module,define){%s
return exports})({},{});
const require={config(){}},requirejs=(_,f)=>f($j,D);
"""
STYLE = """<style>[id^=bertviz-] text{fill:currentColor}
[id^=bertviz-] rect[fill=white]{fill:transparent}</style>"""


def show_bertviz(inspector: AttentionInspector, kind: Literal["head", "model"] = "head") -> None:
    """Show model A's attention in the inspector's layer, on its sentence, in bertviz.

    bertviz counts layers and heads from 0. Its scripts come with cselab, so that it also draws in
    a saved notebook and an exported page. Vig 2019, https://arxiv.org/abs/1906.05714.

    Args:
        kind: "head": lines between tokens, for the chosen heads; "model": a picture of each head.
    """
    import bertviz

    reading = inspector.read(inspector.model_a, inspector.sentence)
    attention = [weights.double().round(decimals=4) for weights in reading.trace.attention]
    # "</" would end the script that contains the tokens
    tokens = [token.replace("</", "<\u200b/") for token in reading.tokens]
    options = {"include_layers": [inspector.layer - 1], "html_action": "return"}
    if kind == "head":
        page = bertviz.head_view(attention, tokens, layer=inspector.layer - 1, **options)
    else:
        page = bertviz.model_view(attention, tokens, display_mode="light", **options)
    view = page.data.partition("</script>")[2]  # the first loads require.js
    mark, _, script = view.partition('<script type="text/javascript">')
    script, _, _ = script.rpartition("</script>")
    files = (FOLDER / "jquery.slim.min.js", FOLDER / "d3.min.js")
    scripts = [file.read_text(encoding="utf-8") for file in files]
    display(HTML(f"{STYLE}{mark}{OPEN % tuple(scripts)}{script}}})();</script>"))

"""Model card of a pretrained backbone, generated from its measurements."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from cselab.workbook.templates import templates


def card_text(
    name: str, kind: str, card: Mapping, text: Sequence[str], in_order: Sequence[str]
) -> str:
    """Markdown with the front matter of a hub card (card.md.j2).

    Args:
        kind: "bert", "roberta" or "llama".
        card: The result of `recipe.make_backbone`.
        text: Names of the corpora; `in_order`: of those that keep their order.
    """
    config, curve = card["config"], card["curve"]
    last = config.get("dropout_last", 0)
    return (
        templates(Path(__file__).parent)
        .get_template("card.md.j2")
        .render(
            card,
            **config,
            name=name,
            kind=kind,
            text=text,
            in_order=in_order,
            own=kind != "llama" and not config["bag_weight"],
            late="every step" if last >= 1 else f"the last {last:.0%} of the steps",
            rows=[*curve[: -1 : max(1, len(curve) // 10)], curve[-1]],
            percent="{:.0%}".format,
        )
    )

"""The model card of a pretrained backbone, written from its numbers."""

from collections.abc import Mapping

LINES = {
    "bert": "A small BERT encoder: masked LM, the words of the sentence from [CLS], and next-sentence prediction for the pooler.",
    "llama": "A small Llama decoder: next-token prediction on single sentences, `[CLS]` first and `[SEP]` last.",
}


def card_text(name: str, kind: str, card: Mapping, text: tuple[str, ...], in_order: tuple[str, ...]) -> str:
    """Markdown, with the front matter of a hub card. card: what `recipe.make` returns."""
    config, measured = card["config"], card["measured"]
    curve = card["curve"]
    losses = [f"| {key} | {value} |" for key, value in measured.items() if not isinstance(value, Mapping)]
    lines = [
        "---", "license: cc-by-sa-4.0", "language: en", "---", f"# {name}", "",
        f"{LINES[kind]} Made by this project from scratch, for its default run; {config['layers']} layers, {config['width']} wide, "
        f"{config['heads']} heads, a lower-case WordPiece vocabulary of {config['vocab_size']:,}, float16.", "",
        "**Text.** " + ", ".join(text) + " (Wikipedia CC BY-SA 3.0; OneStopEnglish CC BY-SA 4.0; Leipzig CC BY 4.0; books, speeches "
        "and Factbook in the public domain) and sentences of this project's generated world: "
        f"{card['sentences']:,} sentences in all, {config['held_out']:,} of them held out."
        + (f" Next-sentence pairs from {', '.join(in_order)}, which keep their order." if kind == "bert" else ""), "",
        f"**Training.** {config['steps']:,} steps of {config['batch_size']} sentences, {card['tokens_seen'] / 1e6:.1f} M tokens, "
        f"AdamW at {config['learning_rate']:g} with warm-up and linear decay, {card['hours']} hours on "
        f"{card['hardware']}{' in bfloat16' if config['bf16'] else ''}, seed {config['seed']}.", "",
        "| step | held-out loss (nats) |", "|---|---|",
        *(f"| {row['step']:,} | {row['held_out']:.2f} |" for row in curve[:: max(1, len(curve) // 10)]),
        f"| {curve[-1]['step']:,} | {curve[-1]['held_out']:.2f} |", "",
        "**Measured** on the finished file (real held-out sentences only):", "", "| | |", "|---|---|", *losses, "",
        *_scores(measured.get("sts", {})),
        f"`cselab card data/backbones/{name} --data-dir <data folder>` measures these numbers again.", "",
        "**Limits.** English only; small, and trained on few tokens: it knows common words. It carries the biases of its text. The "
        "licence is that of its text's derived works, CC BY-SA 4.0.", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _scores(sts: Mapping[str, Mapping[str, float]]) -> list[str]:
    if not sts:
        return []
    tasks = list(next(iter(sts.values())))
    rows = [
        f"| {pooling} | " + " | ".join(f"{scores[task]:.1f}" for task in tasks) + " |"
        for pooling, scores in sts.items()
    ]
    head = "| Spearman × 100 | " + " | ".join(tasks) + " |"
    return [
        "Before any contrastive training (SIF mean: counted word vectors of the same text and width, no network):",
        "",
        head,
        "|---" * (len(tasks) + 1) + "|",
        *rows,
        "",
    ]

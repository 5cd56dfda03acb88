"""Commands that train backbones and translators, registered by `cselab.cli`.

Their imports are inside the functions, so that the command line starts fast.
"""

import json
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

Kind: TypeAlias = Literal["bert", "llama"]
Width = Annotated[int, typer.Option(help="Width of the vectors.")]
Heads = Annotated[int, typer.Option(help="Attention heads; they divide the width.")]
Seed = Annotated[int, typer.Option(help="Seed of weights, batches and masks.")]
Inner = Annotated[int, typer.Option(help="Width of the feed-forward layers.")]
Device = Annotated[str, typer.Option(help="cpu or cuda; CUDA_VISIBLE_DEVICES says which.")]
Bf16 = Annotated[bool, typer.Option("--bf16", help="Faster where bfloat16 matrix units are.")]
DataDir = Annotated[Path | None, typer.Option(help="The data folder; CSELAB_DATA by default.")]


def pretrain(
    folder: Annotated[Path, typer.Argument(help="Folder of the new backbone; must not exist.")],
    kind: Annotated[Kind, typer.Option(help="An encoder, or a decoder for BeLLM.")] = "bert",
    data_dir: DataDir = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="May be repeated; default: all corpora that may be shared."),
    ] = None,
    objectives: Annotated[
        Literal["words", "bert"],
        typer.Option(
            help="words: [CLS] also predicts the words of its sentence; bert: BERT's own."
        ),
    ] = "words",
    steps: Annotated[int, typer.Option(help="Number of training steps.", min=1)] = 9_000,
    batch_size: Annotated[int, typer.Option(help="Sentences per step.", min=2)] = 128,
    learning_rate: Annotated[float, typer.Option(help="Learning rate after the warm-up.")] = 1e-3,
    layers: Annotated[int, typer.Option(help="Number of layers.")] = 6,
    width: Width = 192,
    heads: Heads = 3,
    inner: Inner = 384,
    seed: Seed = 0,
    device: Device = "cpu",
    bf16: Bf16 = False,
) -> None:
    """Pretrain a small backbone from scratch; the defaults are those of the shipped backbones.

    After an interruption, the same command continues.

    \b
    cselab pretrain my-bert --data-dir ~/data --bf16
    cselab pretrain big-bert --data-dir ~/data --bf16 --device cuda --layers 12 --width 384
    cselab pretrain plain-bert --data-dir ~/data --bf16 --objectives bert
    cselab pretrain my-llama --data-dir ~/data --bf16 --kind llama
    """
    from cselab.errors import SettingsError
    from cselab.study.pretraining.backbones import BERT_OBJECTIVES
    from cselab.study.pretraining.recipe import TEXT, make_backbone

    if kind == "llama" and objectives == "bert":
        raise SettingsError("--objectives bert is for a BERT; a llama predicts the next token")
    card = make_backbone(
        kind,
        folder,
        data_dir,
        tuple(corpus or TEXT),
        steps=steps,
        batch_size=batch_size,
        learning_rate=learning_rate,
        layers=layers,
        width=width,
        heads=heads,
        inner=inner,
        seed=seed,
        device=device,
        bf16=bf16,
        **(BERT_OBJECTIVES if objectives == "bert" else {}),
    )
    print(json.dumps(card["measured"], indent=1))


def reset_encoder(
    folder: Annotated[Path, typer.Argument(help="Folder of the new backbone; must not exist.")],
    start: Annotated[str, typer.Option(help="A BERT, as in cselab.load.")] = "all-minilm-l6-v2",
    data_dir: DataDir = None,
    steps: Annotated[int, typer.Option(help="Number of training steps.", min=1)] = 800,
    seed: Seed = 0,
    device: Device = "cpu",
    bf16: Bf16 = False,
) -> None:
    """Train a sentence encoder on with masked LM until it has forgotten its sentence space.

    The shipped `minilm-mlm` was made so; its card is measured at the end. After an interruption,
    the same command continues.

    \b
    cselab reset-encoder minilm-mlm --data-dir ~/data --bf16
    """
    from cselab.study.pretraining import reset

    config = reset.ResetConfig(steps=steps, seed=seed, device=device, bf16=bf16)
    if not (folder / "card.json").is_file():  # else only the measurements are missing
        reset.reset_encoder(start, folder, data_dir, config)
    print(json.dumps(reset.write_card(folder, data_dir)["gate"], indent=1))


def card(
    folder: Annotated[Path, typer.Argument(help="A pretrained backbone.")], data_dir: DataDir = None
) -> None:
    """Measure the numbers on a backbone's card again: losses, accuracy, STS before training."""
    from cselab.study.pretraining.recipe import measure

    print(json.dumps(measure(folder, data_dir), indent=1))


def train_translator(
    folder: Annotated[Path, typer.Argument(help="Folder of the new translator.")],
    parallel: Annotated[
        str, typer.Argument(help="A file in parallel/ of the data folder, without .tsv.gz.")
    ],
    test: Annotated[
        str | None, typer.Option(help="Test file for BLEU and chrF; default: <parallel>-test2016.")
    ] = None,
    data_dir: DataDir = None,
    steps: Annotated[int, typer.Option(help="Number of training steps.")] = 3000,
    dropout: Annotated[
        float, typer.Option(help="Dropout; use 0.1 for thirty epochs or more.")
    ] = 0.0,
    width: Width = 192,
    heads: Heads = 3,
    inner: Inner = 384,
    seed: Seed = 0,
    device: Device = "cpu",
    bf16: Bf16 = False,
) -> None:
    """Train a small translator for round trips, both directions in one model.

    After an interruption, the same command continues.

    \b
    cselab train-translator my-fr multi30k-en-fr --steps 6000 --data-dir ~/data
    cselab train-translator my-de multi30k-en-de --steps 6000 --data-dir ~/data
    cselab run 01 -p translator='my-{pivot}' -p languages=fr,de
    """
    from cselab.data.translation.parallel import load_parallel
    from cselab.study.pretraining import translator

    config = translator.TranslatorConfig(
        steps=steps,
        dropout=dropout,
        width=width,
        heads=heads,
        inner=inner,
        seed=seed,
        device=device,
        bf16=bf16,
    )
    texts = (parallel, test or f"{parallel}-test2016")
    train_text, test_text = (load_parallel(name, folder=data_dir) for name in texts)
    card = translator.train_translator(config, train_text, test_text, folder)
    print(json.dumps(card, indent=1))

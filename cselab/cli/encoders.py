"""Commands for finished encoders."""

from pathlib import Path
from typing import Annotated

import typer

from cselab.cli.options import KEPT, Outputs


def export(
    encoder: Annotated[
        str,
        typer.Argument(
            help="What cselab.load opens: a folder, such as outputs/steps/simcse-fr-…/encoder, or "
            "the name of a shipped backbone."
        ),
    ],
    folder: Annotated[Path, typer.Argument(help="Folder of the exported encoder.")],
    stock: Annotated[
        bool, typer.Option("--stock", help="As a model of transformers, also with a prompt.")
    ] = False,
) -> None:
    """Write a trained encoder as a folder that sentence-transformers opens.

    \b
    cselab export outputs/steps/jtcse-1a2b3c/encoder my-jtcse
    SentenceTransformer("my-jtcse", trust_remote_code=True)     of a twin
    cselab export outputs/steps/bellm-1a2b3c/encoder my-bellm --stock     LoRA's adapters merged
    """
    from cselab import load
    from cselab.models import export

    export(load(encoder), folder, stock=stock)
    print(folder)


def mteb(
    encoder: Annotated[
        str,
        typer.Argument(
            help="What cselab.load opens, a folder or a name; with --hub also the hub's."
        ),
    ],
    benchmark: Annotated[
        str | None, typer.Option(help="offline, a table of a paper, or a benchmark of mteb.")
    ] = None,
    task: Annotated[
        list[str] | None, typer.Option(help="A task of mteb or of cselab; may be repeated.")
    ] = None,
    languages: Annotated[
        list[str] | None, typer.Option(help="Such as de or deu; may be repeated.")
    ] = None,
    pooling: Annotated[
        str | None, typer.Option(help="cls, mean, first_last, …; by default, the folder's own.")
    ] = None,
    hub: Annotated[bool, typer.Option("--hub", help="Let mteb load its own data.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="A data folder; CSELAB_DATA by default.")
    ] = None,
    outputs: Outputs = KEPT,
    name: Annotated[
        str | None, typer.Option(help="Name of the encoder in the results; default: its folder's.")
    ] = None,
) -> None:
    """Evaluate an encoder with mteb, and show its scores beside the papers'; finished tasks are
    kept (docs/how-to/mteb.md).

    \b
    cselab mteb outputs/steps/jtcse-…/encoder                        all tasks with local data
    cselab mteb my-encoder --task STS17 --task STS12 --languages en
    cselab mteb my-encoder --benchmark jtcse-classification --hub    Table II, from the hub
    """
    from cselab.data.hub import model_folder
    from cselab.study.mteb_report import evaluate_folder

    report = evaluate_folder(
        model_folder(encoder, hub=hub, setting="encoder"),
        outputs / "mteb",
        benchmark=benchmark,
        tasks=task or (),
        languages=languages or (),
        pooling=pooling,
        folder=data_dir,
        hub=hub,
        name=name,
    )
    print(report)

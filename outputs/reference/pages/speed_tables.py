"""The tables of what was measured beside the studies: benchmarks, times, viewers, translators."""

import json

import pandas
from result_values import REFERENCE

from cselab.workbook.chapters import CHAPTERS


def benchmarks() -> dict[str, dict]:
    """The figures of `make bench` on a processor, by name."""
    return json.loads((REFERENCE / "benchmarks.json").read_text())["cpu"]["figures"]


SPEEDS = {
    "TNCSE step against released": ("TNCSE step, batch 64", "the released code's arithmetic"),
    "TNCSE step against released, bf16": ("the same with `bf16`", "the same, in float32"),
    "TNCSE step against loops": ("TNCSE step, batch 64", "losses row by row, eager attention"),
    "JTCSE's rate over TNCSE's": ("JTCSE step", "TNCSE step"),
    "ICTM, N = 64": ("ICTM, forward and backward, N = 64", "the loop over rows"),
    "ICTM, N = 256": ("ICTM, forward and backward, N = 256", "the loop over rows"),
    "STS-7 evaluation": ("seven STS tests", "SentEval's loop, as SimCSE's script runs it"),
    "STS-7 against mteb": (
        "seven STS tests, all splits of SICK-R",
        "mteb with sentence-transformers",
    ),
    "encode 10,000 sentences": ("encode 10,000 sentences", "`SentenceTransformer.encode`"),
}
"""Figures of the benchmarks: what is timed, and against which peer."""


def speeds() -> pandas.DataFrame:
    """How much faster than its peer each piece of work is (`make bench`)."""
    figures, rows = benchmarks(), {}
    for name, (work, peer) in SPEEDS.items():
        ratios = figures[name]
        note = f" (by FLOPs {ratios['by_flops']:.2f})" if "by_flops" in ratios else ""
        rows[name] = {
            "ours": work + note,
            "against": peer,
            "×": f"{ratios['median']:.2f}",
            "least … most": f"{ratios['least']:.2f} … {ratios['most']:.2f}",
        }
    return pandas.DataFrame(rows).T.set_index("ours")


PROFILES = {
    "TNCSE step, float32": ("TNCSE step, profile", "TNCSE step against released"),
    "encode 10,000 sentences": ("encode, profile", "encode 10,000 sentences"),
}
"""Columns of the table of profiles: a profile, and the comparison that belongs to it."""


def profile() -> pandas.DataFrame:
    """Shares of the time of a step and of encoding, and what products at the machine's peak would
    bring (benchmarks i and d)."""
    figures = benchmarks()
    columns = {}
    for column, (name, comparison) in PROFILES.items():
        shares, times = figures[name], figures[comparison]["median"]
        products, of_peak = shares["products_percent"] / 100, shares["percent_of_peak"] / 100
        columns[column] = {
            "time in matrix products": f"{shares['products_percent']} %",
            "GFLOP/s": f"{shares['gflops_per_s']}",
            "GFLOP/s of the fastest square product": f"{shares['peak_gflops_per_s']}",
            "share of that": f"{shares['percent_of_peak']} %",
            "× against the peer": f"{times:.2f}",
            "× if products ran at that peak, the rest as it is": (
                f"{times / (1 - products + of_peak):.2f}"
            ),
            "× if all ran at that peak": f"{times / of_peak:.2f}",
        }
    return pandas.DataFrame(columns)


def growth() -> pandas.DataFrame:
    """From the least to the most of each axis: how often the time, how often the FLOPs (benchmark
    k)."""
    rows = {}
    for name, figure in benchmarks().items():
        if figure["benchmark"] != "k":
            continue
        (least, first), *_, (most, last) = figure["points"].items()
        rows[name] = {
            "from … to": f"{int(least):,} … {int(most):,}",
            "time ×": f"{last['seconds'] / first['seconds']:.1f}",
            "FLOPs ×": f"{last['gflop'] / first['gflop']:.1f}",
            "time": f"{first['seconds']:.3g} … {last['seconds']:.3g} s",
            "GFLOP/s": " … ".join(f"{p['gflop'] / p['seconds']:.0f}" for p in (first, last)),
        }
    return pandas.DataFrame(rows).T


def times() -> pandas.DataFrame:
    """How long each notebook runs, and its memory (`times.py`)."""
    times = json.loads((REFERENCE / "times.json").read_text())
    rows = {chapter.stem: times["notebooks"][chapter.stem] for chapter in CHAPTERS.values()}
    return pandas.DataFrame(rows).T.rename(columns={"time": f"time ({times['machine']})"})


def translators() -> pandas.DataFrame:
    """The translators of the real-text grids: the cards that `cselab train-translator` wrote."""
    rows = {}
    for path in sorted((REFERENCE / "translators").glob("*.json")):
        card = json.loads(path.read_text())
        source, target = card["languages"]
        rows[f"{source} ↔ {target}"] = {
            "steps": f"{card['config']['steps']:,}",
            "epochs": f"{card['epochs']:.1f}",
            "minutes": f"{card['seconds'] / 60:.0f}",
            **{
                f"{measure} {way}": f"{scores[measure]:.1f}"
                for measure in ("BLEU", "chrF")
                for way, scores in (
                    ("from English", card["scores"][f"{source}-{target}"]),
                    ("into English", card["scores"][f"{target}-{source}"]),
                )
            },
        }
    return pandas.DataFrame(rows).T


def sweep() -> dict[int, tuple[dict, dict]]:
    """By workers: the times of the shortest sweep, and its efficiency (`benchmarks/sweep.py`)."""
    record = json.loads((REFERENCE / "sweep.json").read_text())
    return {
        int(n): (min(record["seconds"][n], key=lambda one: one["runs"]), parts)
        for n, parts in record["efficiency"].items()
    }


def sweeping() -> pandas.DataFrame:
    """Times and efficiency of a sweep by its workers (`benchmarks/sweep.py`)."""
    rows = {
        n: {
            "runs": f"{best['runs']} s",
            "command": f"{best['command']} s",
            "efficiency of the runs": f"{parts['runs']:.2f}",
            "of the command": f"{parts['command']:.2f}",
            "same work": f"{parts['work']:.2f}",
            "workers busy": f"{parts['busy']:.2f}",
        }
        for n, (best, parts) in sweep().items()
    }
    return pandas.DataFrame(rows).T.rename_axis("workers")


ABILITIES = {
    "models and layers in one file": ("2, all", "1, all", "1, one layer"),
    "adapts to a width of 400 px and a dark theme": ("both", "dark by an option", "light only"),
    "difference of two models; values; hidden sinks": ("yes", "no", "no"),
    "reached with the keyboard": ("every head, token and control", "no", "no"),
    "lines between tokens; neurons; encoder-decoders; decoders": ("no", "yes", "decoders"),
}
"""Abilities of the tools for attention, in the order of viewers.json: looked at, not measured."""


def viewers() -> pandas.DataFrame:
    """One page of attention by three tools (`benchmarks/viewers.py`)."""
    pages = json.loads((REFERENCE / "viewers.json").read_text())["pages"].values()
    drawn = ["yes" if page["marks"] else f'no: "{"; ".join(page["errors"])}"' for page in pages]
    rows = {
        "size": [f"{page['bytes'] / 1e6:.2f} MB" for page in pages],
        "drawn without a network": drawn,
        **ABILITIES,
    }
    versions = [page.get("version") for page in pages]
    columns = [
        "cselab",
        f"bertviz {versions[1]} model view",
        f"circuitsvis {versions[2]} `attention_heads`",
    ]
    return pandas.DataFrame.from_dict(rows, orient="index", columns=columns)

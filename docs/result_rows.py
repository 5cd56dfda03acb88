"""The rows that tables of the recorded studies are made of, by their labels."""

from cselab.reporting.tables import paper_rows

PRINTED = {
    "untrained (first_last)": "BERT-base",
    "SimCSE": "SimCSE",
    "off-dropout": "ImSimCSE (+Off-Info)",
    "SimCSE + DCL": "ImSimCSE (+DCL)",
    "ImSimCSE": "ImSimCSE",
    "EDFSE (4 pivots)": "EDFSE",
    "TNCSE": "TNCSE",
    "JTCSE, parallel": "JTCSE",
    "EDFSE D": "EDFSE D",
    "TNCSE D": "TNCSE D",
    "JTCSE D": "JTCSE D",
    "JTCSE UC": "JTCSE+UC",
    "JTCSE UC D": "JTCSE+UC D",
    "whitened (cls)": "BERT-whitening",
    "first-last average": "BERT-base",
    **paper_rows(),
}
"""Labels of the main table and of the baselines by their rows in JTCSE's Table I or ImSimCSE's
Table 3."""
HEADLINE = {
    "untrained (first_last)": "BERT-base",
    "SimCSE": "SimCSE",
    "sum of two towers": "TNCSE, dual encoder, untrained",
    "TNCSE": "TNCSE",
    "JTCSE": "JTCSE",
}
"""Labels of the README's table by their rows in JTCSE's Table I, and the sum in TNCSE's Table 3."""
SHOWN = [
    "average",
    "sd",
    "seeds",
    "dev",
    "difference",
    "95 % interval",
    "p (Holm)",
    "seeds for 80 % power",
]
ON_STATES = "JTCSE on h^L, LayerNorms removed: "
CONTRASTS = (
    (1, "JTCSE", "sum of two towers"),
    (2, "JTCSE", "TNCSE"),
    (2, "JTCSE", "JTCSE, CAELs: 6"),
    (3, "JTCSE: nce", "sum of two towers"),
    (3, "JTCSE: nce", "JTCSE"),
    (3, "JTCSE: icnce", "sum of two towers"),
    (3, "JTCSE: icnce", "JTCSE"),
    (4, "JTCSE", "JTCSE: nce,icnce"),
    (4, "JTCSE: ictm", "sum of two towers"),
    (5, "JTCSE", f"{ON_STATES}0"),
    (5, f"{ON_STATES}0", f"{ON_STATES}1"),
    (5, f"{ON_STATES}0", f"{ON_STATES}3"),
    (6, "tower, round trips: append", "tower, round trips: twice"),
    (6, "sum of two towers", "SimCSE"),
    (7, "JTCSE D", "JTCSE"),
    (7, "TNCSE D", "TNCSE"),
    (8, "SimCSE + DCL", "SimCSE"),
    (8, "off-dropout", "SimCSE"),
    (9, "SimCSE", "less noise on positives"),
    (9, "SimCSE", "more noise on positives"),
    (10, "SimCSE", "untrained (cls)"),
    (10, "SimCSE", "untrained (first_last)"),
    (10, "SimCSE, pooled: first_last", "untrained (first_last)"),
)
"""The front page's table: the number of a finding, and two rows whose difference it is about."""
STUDIES = {
    "losses": ("SimCSE, I + II", ["SimCSE, I + II, 260 steps", "JTCSE: *", "JTCSE, parallel"]),
    "caels": ("JTCSE, parallel", ["JTCSE, * CAELs, *", "TNCSE"]),
    "norms": ("JTCSE, h^L, 0 without LayerNorm", ["JTCSE, h^L, *", "JTCSE, parallel"]),
    "released": ("JTCSE, parallel", ["JTCSE, released *"]),
    "released-tower": ("off-dropout", ["off-dropout, released"]),
    "pooling": (
        "SimCSE",
        ["SimCSE, mean", "SimCSE, first_last", "SimCSE, last_two", "SimCSE, pooler"],
    ),
    "noise": ("SimCSE", ["more noise, *", "less noise, *"]),
    "rank": ("SimCSE", ["SimCSE + Barlow, *"]),
    "round-trips": ("tower, round trips twice", ["tower, round trips *"]),
    "text": ("SimCSE", ["SimCSE with *", "SimCSE, a third *"]),
    "text-twin": ("JTCSE, parallel", ["JTCSE with *", "JTCSE, a third *"]),
    "terms": ("SimCSE, τ = 0.05", ["off-dropout", "SimCSE + DCL", "ImSimCSE", "TNCSE, one tower"]),
    "terms-3e-05": (
        "SimCSE, τ = 0.05, rate 3e-05",
        ["off-dropout", "SimCSE + DCL", "TNCSE, one tower"],
    ),
    "terms-0.0001": ("SimCSE, τ = 0.05, rate 0.0001", ["ImSimCSE"]),
    "hyperparameters": (
        "ImSimCSE",
        [
            "ImSimCSE, m = *",
            "ImSimCSE, pos_ratio = *",
            "ImSimCSE, off_info,*",
            "ImSimCSE, τ = *",
            "off-dropout",
        ],
    ),
    "together": ("JTCSE, parallel", ["JTCSE + DCL", "JTCSE, off-dropout*", "TNCSE", "TNCSE + DCL"]),
    "captions-modes": ("captions, twice", ["captions, *"]),
    "wikipedia-modes": ("Wikipedia, twice", ["Wikipedia, *"]),
    "bellm-mean": ("BeLLM none, mean", ["BeLLM *, mean"]),
    "bellm-last": ("BeLLM none, last_token", ["BeLLM *, last_token"]),
}
"""By name: the row that others are compared with, and these."""

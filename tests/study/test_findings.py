"""The sentences on the front page of the results, and in the README, held against the stores."""

import pytest
from result_values import difference, mean

from cselab.study.claims import BETTER, NO_DIFFERENCE, UNDECIDED, WORSE, verdict

REMOVED = "JTCSE on h^L, LayerNorms removed: "
FINDINGS = [
    # better, than, and the verdicts that the sentence allows on synthetic and on real text
    ("JTCSE", "JTCSE: nce", {WORSE}, {NO_DIFFERENCE}),
    ("TNCSE", "JTCSE: nce", {WORSE}, {NO_DIFFERENCE}),
    ("JTCSE", "sum of two towers", {BETTER}, {WORSE}),
    ("JTCSE", "TNCSE", {NO_DIFFERENCE}, {NO_DIFFERENCE}),
    ("JTCSE", "JTCSE: nce,icnce", {WORSE}, {NO_DIFFERENCE}),
    (f"{REMOVED}3", f"{REMOVED}0", {WORSE}, {WORSE}),
    ("tower, round trips: append", "tower, round trips: twice", {UNDECIDED}, {BETTER}),
    ("SimCSE + DCL", "SimCSE", {UNDECIDED}, {NO_DIFFERENCE}),
    ("less noise on positives", "SimCSE", {WORSE}, {WORSE}),
    ("JTCSE D", "JTCSE", {NO_DIFFERENCE}, {WORSE}),
]


@pytest.mark.parametrize(("better", "than", "synthetic", "real"), FINDINGS)
def test_a_finding_is_what_the_runs_say(better, than, synthetic, real):
    """Prevents a sentence that new runs no longer support; only its numbers are generated."""
    assert verdict(difference("synthetic-papers", better, than)) in synthetic
    assert verdict(difference("real-papers", better, than)) in real


def test_nothing_trained_reaches_tf_idf_on_real_text():
    """Prevents the README's sentence on the floors from outliving a better model."""
    floor = float(mean("real-papers", "TF-IDF"))
    trained = ("SimCSE", "sum of two towers", "JTCSE: nce", "TNCSE", "JTCSE")
    assert all(float(mean("real-papers", label)) < floor for label in trained)

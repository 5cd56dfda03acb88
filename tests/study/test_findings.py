"""The findings on the front page of the results, held against the stores."""

import claim_tables
import pytest
import result_values
import second_backbone
from result_tables import HEADLINE
from result_values import CONTRASTS, ON_STATES, difference

from cselab.study.claims import CONTRADICTED, MARGIN, NO_EFFECT, SUPPORTED, UNDECIDED, verdict


def judged(*allowed, margin=MARGIN):
    """Whether the verdict on a difference is one of these."""
    return lambda gain: verdict(gain.mean, gain.low, gain.high, None, margin) in allowed


above = judged(SUPPORTED)
below = judged(CONTRADICTED)
negligible = judged(NO_EFFECT)
unsettled = judged(UNDECIDED)
no_gain = judged(CONTRADICTED, NO_EFFECT, UNDECIDED)
no_loss = judged(SUPPORTED, NO_EFFECT, UNDECIDED)
tenths = judged(NO_EFFECT, margin=2 * MARGIN)
FINDINGS = [
    # number, A, B; what the sentence says of A - B on synthetic text, and on real text
    # (None: nothing)
    (1, "JTCSE", "sum of two towers", above, below),
    (2, "JTCSE", "TNCSE", tenths, tenths),
    (2, "JTCSE", "JTCSE, CAELs: 6", tenths, tenths),
    (3, "JTCSE: nce", "sum of two towers", above, no_gain),
    (3, "JTCSE: nce", "JTCSE", no_loss, no_loss),
    (3, "JTCSE: icnce", "sum of two towers", above, no_gain),
    (3, "JTCSE: icnce", "JTCSE", no_loss, no_loss),
    (4, "JTCSE", "JTCSE: nce,icnce", below, negligible),
    (4, "JTCSE: ictm", "sum of two towers", below, above),
    (5, "JTCSE", f"{ON_STATES}0", tenths, negligible),
    (5, f"{ON_STATES}0", f"{ON_STATES}1", negligible, above),
    (5, f"{ON_STATES}0", f"{ON_STATES}3", above, above),
    (6, "tower, round trips: append", "tower, round trips: twice", no_gain, above),
    (6, "tower, round trips: append", "untrained (cls)", no_gain, None),
    (6, "tower, round trips: twice", "untrained (cls)", no_gain, None),
    (6, "sum of two towers", "SimCSE", no_gain, above),
    (7, "JTCSE D", "JTCSE", no_gain, no_gain),
    (7, "TNCSE D", "TNCSE", no_gain, no_gain),
    (8, "SimCSE + DCL", "SimCSE", no_gain, negligible),
    (8, "off-dropout", "SimCSE", unsettled, below),
    (9, "SimCSE", "less noise on positives", above, above),
    (9, "SimCSE", "more noise on positives", below, above),
    (10, "SimCSE", "untrained (cls)", above, above),
    (10, "SimCSE", "untrained (first_last)", above, below),
    (10, "SimCSE, pooled: first_last", "untrained (first_last)", above, above),
    (10, "JTCSE", "untrained (first_last)", None, below),
    (10, "sum of two towers", "untrained (first_last)", None, below),
]


def test_dev_would_have_kept_the_sum_on_real_text():
    """Prevents a finding that blames stage 2 where the rule of checkpoints alone is to blame."""
    gain = result_values.scores("real-papers", "JTCSE", "dev") - result_values.scores(
        "real-papers", "sum of two towers", "dev"
    )
    assert gain.max() < 0


CAPTIONS = [
    # A, B, and what the paragraph on captions says of A - B on the other pairs
    ("JTCSE", "sum of two towers", unsettled),
    ("JTCSE: nce", "sum of two towers", unsettled),
    ("JTCSE: icnce", "sum of two towers", unsettled),
    ("off-dropout", "SimCSE", unsettled),
    ("SimCSE", "untrained (cls)", unsettled),
    (f"{ON_STATES}0", f"{ON_STATES}1", negligible),
]


def test_what_captions_change_is_what_the_runs_say():
    """Prevents a list of findings that hang on captions and leaves one out."""
    says = {(better, than): check for better, than, check in CAPTIONS}
    for number, better, than, _, real in FINDINGS:
        check = says.get((better, than), real)
        if check:
            gain = difference("real-papers", better, than, "no captions")
            assert check(gain), f"finding {number} without captions: {gain}"


SETTINGS = ("papers", "tuned")
TUNED = [
    # A, B, and what the list on tuned settings says of A - B on synthetic text
    ("JTCSE", "sum of two towers", unsettled),
    ("JTCSE", f"{ON_STATES}0", above),
    ("JTCSE: nce", "sum of two towers", unsettled),
    ("JTCSE: icnce", "sum of two towers", unsettled),
    ("JTCSE", "JTCSE: nce,icnce", unsettled),
    ("sum of two towers", "SimCSE", above),
    ("off-dropout", "SimCSE", above),
    ("JTCSE: ictm", "sum of two towers", below),
]


TUNED_REAL = [
    # A, B, and what it says of A - B on real text
    ("JTCSE", "sum of two towers", negligible),
    ("JTCSE: nce", "sum of two towers", negligible),
    ("JTCSE: icnce", "sum of two towers", negligible),
    ("JTCSE: ictm", "sum of two towers", above),
    ("tower, round trips: append", "tower, round trips: twice", unsettled),
    ("sum of two towers", "SimCSE", unsettled),
    ("SimCSE", "less noise on positives", above),
    ("SimCSE", "more noise on positives", above),
    ("sum of two towers", "untrained (first_last)", above),
    ("JTCSE", "untrained (first_last)", above),
    ("JTCSE D", "JTCSE", unsettled),
    ("TNCSE D", "TNCSE", unsettled),
    ("off-dropout", "SimCSE", below),
]


def test_claims_that_change_without_captions_as_tuned():
    """Prevents the same of the paragraph on captions, which names them."""
    assert list(claim_tables.no_captions("real-tuned").index) == [
        "SimCSE improves the pretrained encoder",
        "A single student (D) is better than its teacher, JTCSE",
    ]


def test_tuning_lifts_towers_and_noise_hurts_otherwise_on_real_text():
    """Prevents the same of what it says of sizes, and of captions."""
    for label in ("SimCSE", "sum of two towers", "JTCSE"):
        before, after = (result_values.scores(f"real-{grid}", label) for grid in SETTINGS)
        assert after.min() > before.mean(), label
    less, more = (
        [difference(f"real-{grid}", "SimCSE", label).mean for grid in SETTINGS]
        for label in ("less noise on positives", "more noise on positives")
    )
    assert less[0] < less[1]
    assert more[0] > more[1]
    for label in ("SimCSE", "sum of two towers", "JTCSE"):
        gain = difference("real-tuned", label, "untrained (first_last)", "no captions")
        assert below(gain)


def test_simcse_is_better_with_a_head_in_every_pair_of_dev_scores():
    """Prevents the page on the second backbone from calling the tuned grids' missing head a
    finding, and from saying this of other runs."""
    dev = second_backbone.climb()["STS-B dev"].astype(float)
    without = dev[dev.index.str.contains(", none,")]
    gains = dev[without.index.str.replace("none", "mlp_train_only")].to_numpy() - without
    assert (gains > 0).all()
    cold = without.index.str.contains("τ 0.05")
    assert gains[cold].min() > gains[~cold].max()


ROUND_TRIPS = [
    # text, row, and what the page on round trips says of the row minus the text twice
    *(("captions", f"replace, {pivot}", above) for pivot in ("fr", "de")),
    *(("captions", f"pair, {pivot}", below) for pivot in ("fr", "de")),
    *(("captions", f"append, {pivot}", unsettled) for pivot in ("fr", "de")),
    ("Wikipedia", "replace", above),
    ("Wikipedia", "append", above),
    ("Wikipedia", "pair", unsettled),
]


@pytest.mark.parametrize(
    ("store", "better", "than", "says"),
    [
        *(("synthetic-papers", *row[1:4]) for row in FINDINGS if row[3]),
        *(("real-papers", *row[1:3], row[4]) for row in FINDINGS if row[4]),
        *(("synthetic-tuned", *row) for row in TUNED),
        *(("real-tuned", *row) for row in TUNED_REAL),
        *(
            ("real-round-trips", f"{text}, {row}", f"{text}, twice", says)
            for text, row, says in ROUND_TRIPS
        ),
    ],
)
def test_a_sentence_on_a_difference_is_what_the_runs_say(store, better, than, says):
    """Prevents a sentence that new seeds no longer support; only its numbers are generated."""
    assert says(difference(store, better, than))


def test_the_front_page_and_the_readme_say_what_the_stores_have():
    """Prevents a row under a finding that says something else, and the README's sentence that
    nothing in its table reaches the untrained average on real text."""
    held = [finding[:3] for finding in FINDINGS]
    assert [row for row in held if row in CONTRASTS] == list(CONTRASTS)
    means = {label: result_values.scores("real-papers", label).mean() for label in HEADLINE}
    assert max(means, key=means.get) == "untrained (first_last)"

"""The check before a run: it finds what would end it later, trains nothing and changes nothing."""

import pytest
import torch
from quick import same_weights

from cselab.data.translation.pivot import LexicalPivot
from cselab.errors import DataError, ModelError, SettingsError
from cselab.experiments import check
from cselab.models import SentenceEncoder


@pytest.fixture
def poolerless(make_roberta, word_tokenizer, tmp_path) -> str:
    """A folder with a RoBERTa without a pooler, as the hub's is."""
    backbone = make_roberta(1)
    backbone.pooler = None
    SentenceEncoder(backbone, word_tokenizer).save_pretrained(tmp_path / "roberta")
    return str(tmp_path / "roberta")


@pytest.mark.parametrize("name", ["jtcse", "tncse_single", "uc_d"])
def test_a_missing_pooler_is_found_before_any_training(open_lab, poolerless, name):
    """Prevents two trained towers and then an error; the settings that it names help."""
    # InfoCSE would need a masked-LM head
    outsider = {"outsider.method": "simcse", "outsider.backbone": poolerless}
    lab = open_lab(backbone=poolerless, **outsider)
    message = f"^{name}: .*roberta has no trained pooler.*pooler='fresh'.*ictm.measured_on='cls'"
    with pytest.raises(ModelError, match=message):
        lab.check(name)
    assert not list(lab.cache.steps_dir.iterdir())
    open_lab(backbone=poolerless, pooler="fresh", **outsider).check(name)


def test_a_twin_without_a_pooler_is_trained_with_the_settings_of_the_message(open_lab, poolerless):
    lab = open_lab(backbone=poolerless, pooler="fresh")
    assert lab.train("jtcse").encoder.tower_i.pooler is not None
    lab = open_lab(backbone=poolerless, **{"ictm.measured_on": "cls"})
    lab.check("jtcse")
    assert lab.train("jtcse").encoder.tower_i.pooler is None


def test_the_check_changes_nothing(lab):
    """Prevents a check that leaves steps behind, moves the random state or makes a later training
    another."""
    before = lab.train("jtcse")
    kept = sorted(lab.cache.steps_dir.iterdir())
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    lab.check("jtcse", "edfse_d", "simcse", "bellm", "sif", "flow", "rankcse")
    assert torch.equal(torch.rand(1), expected)
    assert sorted(lab.cache.steps_dir.iterdir()) == kept
    assert same_weights(lab.with_settings(seed=3).train("jtcse"), before)


def test_the_check_says_what_it_found(lab, capsys):
    lab.check("jtcse", "simcse")
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("checked: 60 sentences (embedded (synthetic text)); ")
    assert line.endswith("dev Synthetic, tests Synthetic (embedded); jtcse, simcse can be built")


def test_lexical_round_trips_of_other_than_synthetic_text_are_mentioned_once(open_lab, capsys):
    """Prevents round trips that are mostly the sentences themselves, unnoticed, and the line where
    none are read, or of the text that the translator is made for."""
    real = {"corpus": "wikipedia-20k", "sentences": 90}
    for settings in ({}, {"corpus": "nli"}, {**real, "mode": "none"}):
        open_lab(**settings).check("jtcse")
    assert capsys.readouterr().err == ""
    lab = open_lab(**real)
    lab.check("jtcse")
    lab.check("simcse", "jtcse")
    (line,) = capsys.readouterr().err.splitlines()
    text = lab.data.sentences()
    pairs = zip(text, LexicalPivot("fr")(text), strict=True)
    share = f"{sum(a != b for a, b in pairs) / 90:.0%} of 90 sentences"
    assert line.startswith(f'round trips: translator "lexical" (pivot fr) changes {share}; ')
    assert "it is made for synthetic text; choose bergamot (pivot pt)" in line


def test_runs_without_a_lab_are_checked(lab):
    """Prevents a check in Python that needs a notebook's lab."""
    run = lab.run("jtcse", caels=3)
    with pytest.raises(SettingsError, match=r"^jtcse: caels=3 does not divide the 4 layers"):
        check([lab.run("simcse"), run])


@pytest.mark.parametrize(
    ("method", "settings", "kind", "message"),
    [
        ("simcse", {"sentences": 5}, DataError, "^simcse: 5 sentences are fewer than one batch of"),
        ("simcse_supervised", {"triplets": 5}, DataError, "5 triplets are fewer than one batch of"),
        ("uc", {"twin.max_length": 4096}, SettingsError, "^uc: max_length=4096: the backbone"),
        ("promcse", {"max_length": 128}, SettingsError, "max_length=128 and 16 tokens of the pro"),
        ("scd", {"chunk": 4}, SettingsError, "^scd: SCD has a batch norm.*; set chunk=0"),
        ("whitenedcse", {"group_size": 8}, DataError, "of 8 features cannot be whitened over 8"),
        ("jtcse", {"tasks": "STSBenchmrk"}, DataError, "did you mean 'STSBenchmark'"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_what_would_end_a_run_later_is_found(open_lab, method, settings, kind, message):
    """Prevents an hour of training that ends at what was there to see at its start."""
    with pytest.raises(kind, match=message) as caught:
        open_lab(**settings).check(method)
    assert "\n" not in str(caught.value)

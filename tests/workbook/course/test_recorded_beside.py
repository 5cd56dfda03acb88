"""Sentences of notebooks that depend on their numbers."""

import re

import cselab
from cselab.experiments import Trained, open_lab
from cselab.study import recorded
from cselab.workbook.course import compare_with_recorded


def test_settings_that_differ_from_the_recorded_runs_are_listed(monkeypatch, tmp_path):
    """Prevents a page that compares its score with that of another weight, rate or text, and says
    that only the length of the training differs."""
    monkeypatch.setenv("CSELAB_DATA", "")
    lab = open_lab("x", sentences=50, synthetic_pairs=20, outputs=tmp_path)
    there = recorded.methods("synthetic-papers")["TNCSE"]
    weight = there.value_at(("terms", "ictm", "weight"))
    encoder = cselab.load("tiny-bert")
    report = lab.evaluate({"TNCSE": Trained(encoder, there)})["TNCSE"]
    other = lab.config("tncse", **{"terms.ictm": 7, "towers.1.temperature": 0.2})
    box = compare_with_recorded(lab, {"TNCSE": (report, Trained(encoder, other))}).data
    listed = dict(re.findall(r"- `(.+)`: (.+) there \(TNCSE\)", box))
    assert listed["terms.ictm.weight"] == f"7.0 here, {weight}"
    assert listed["towers.1.temperature"].startswith("0.2 here, ")
    other = lab.config("tncse", **{"terms": {"nce": 1, "ictm": 1}})
    box = compare_with_recorded(lab, {"TNCSE": (report, Trained(encoder, other))}).data
    assert "`terms.icnce.weight`: None here, 1.0 there" in box  # on one side alone
    assert not [path for path in listed if path.endswith(("steps", "seed"))]
    equal = compare_with_recorded(lab, {"TNCSE": (report, Trained(encoder, there))}).data
    assert "All settings are equal." in equal


def test_a_page_with_other_tests_is_not_set_beside_recorded_scores(tmp_path):
    """Prevents two numbers of different tests side by side, and "the text is synthetic in both"
    below sentences of Wikipedia."""
    lab = open_lab("x", profile="english", outputs=tmp_path)
    box = compare_with_recorded(lab, {"TNCSE": (None, None)}).data
    assert "its text is wikipedia-20k, its tests are STS17-en-en, SNLI" in box
    assert "cannot be set beside" in box

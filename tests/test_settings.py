"""Settings: strict names, frozen values, profiles that build."""

import os
import subprocess
import sys

import pytest
from pydantic import ValidationError

from cselab.errors import SettingsError
from cselab.lab import settings_hash
from cselab.settings import LEDGER_ROWS, PROFILES, Settings


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_builds_and_is_frozen(profile):
    settings = Settings.of(profile)
    assert settings.profile == profile
    with pytest.raises(ValidationError):
        settings.seed = 1


def test_unknown_profile_names_the_nearest():
    with pytest.raises(SettingsError, match="unknown profile 'papers'; did you mean 'paper'"):
        Settings.of("papers")


def test_unknown_setting_names_the_nearest():
    """Prevents a typo from silently training with the default."""
    with pytest.raises(
        SettingsError, match="unknown setting 'stage1_learning_rate'; did you mean 'stage1_learning_rate_i"
    ):
        Settings.of("tiny", stage1_learning_rate=1e-3)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"seed": "abc"}, "seed: .*integer.*got 'abc'"),
        ({"stage1_batch_size": 1}, "stage1_batch_size: .*greater than or equal to 2.*got 1"),
        ({"temperature": 0.0}, "temperature: .*greater than or equal to 0.0001"),
        ({"rtt_mode": "add"}, "rtt_mode: .*'append', 'replace', 'pair', 'none' or 'twice'"),
        ({"released_rows": "modulos"}, "unknown ledger row 'modulos'; did you mean 'modulus'"),
    ],
)
def test_a_bad_value_is_one_line_naming_the_setting(bad, message):
    with pytest.raises(SettingsError, match=message) as caught:
        Settings.of("tiny", **bad)
    assert "\n" not in str(caught.value)


def test_none_keeps_the_profile_and_names_can_come_from_a_command_line():
    settings = Settings.of("tiny", seed=None, tasks="STS12, STS13", released_rows="all")
    assert settings.seed == 42
    assert settings.tasks == ("STS12", "STS13")
    assert settings.released_rows == LEDGER_ROWS


def test_hash_follows_what_changes_a_result_and_nothing_else(tmp_path):
    """Prevents rows of different runs from passing as one, and the same run in two folders as two."""
    base = settings_hash(Settings.of("tiny"))
    assert base == settings_hash(Settings.of("tiny", outputs=tmp_path))
    assert base != settings_hash(Settings.of("tiny", temperature=0.1))


def test_another_process_writes_the_same_settings():
    """Prevents a sweep from running anew what its store has: a set of strings has another order in every process."""
    code = "from cselab.settings import Settings; print(Settings.of('tiny', released_rows='all').model_dump_json())"
    written = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in "123"
    }
    assert len(written) == 1


def test_the_two_towers_differ_and_stage_2_is_the_released_optimiser():
    settings = Settings.of("paper")
    assert settings.stage1("i").learning_rate == 1.5e-5
    assert settings.stage1("ii").learning_rate == 2e-5
    joint = settings.stage2()
    assert (joint.decay, joint.weight_decay, joint.max_grad_norm) == ("constant", 0.01, 0.0)

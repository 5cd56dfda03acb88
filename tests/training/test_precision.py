"""bfloat16 on a processor that has none: one line, float32, and no benchmark."""

import os
import platform
import subprocess
import sys
import time

import pytest

import cselab
from cselab import lab as lab_module
from cselab.training import precision


@pytest.fixture
def slow_bfloat16(monkeypatch):
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: False)
    lab_module._warn_once.cache_clear()


def test_float32_takes_its_place_and_the_results_say_so(slow_bfloat16, tmp_path, capsys):
    """Prevents minutes of standing still at 0.3 GFLOP/s, and results that claim a precision they did not have."""
    lab = cselab.open_lab("test", outputs=tmp_path, device="cpu", bf16=True)
    again = lab.with_settings(seed=2)
    assert not lab.settings.bf16
    assert not again.settings.stage2().bf16
    assert lab.environment["precision"] == "float32"
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "bf16=True: this machine has no fast bfloat16, so float32 is used" in said


def test_a_machine_that_has_it_keeps_it(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: True)
    lab = cselab.open_lab("test", outputs=tmp_path, device="cpu", bf16=True)
    assert lab.settings.bf16
    assert lab.environment["precision"] == "bfloat16"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("narrow", "found"), [(400.0, False), (1.5, True)])
def test_the_slower_product_decides(monkeypatch, narrow, found):
    """Prevents a threshold that a busy machine crosses: the ratio is hundreds or near one."""
    taken = iter([1.0, narrow])
    monkeypatch.setattr(precision, "_seconds", lambda matrix: next(taken))
    assert precision.has_bfloat16.__wrapped__("cpu") is found


def test_asking_takes_no_time():
    started = time.perf_counter()
    precision.has_bfloat16.__wrapped__("cpu")
    assert time.perf_counter() - started < 5


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the kernels of x86 can be told to do without bfloat16")
def test_a_processor_without_it_is_found_on_a_busy_machine():
    """Prevents a timing that measures how threads wait for each other, and not the product."""
    code = "from cselab.training.precision import has_bfloat16; print(has_bfloat16('cpu'))"
    variables = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"

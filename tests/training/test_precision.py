"""bfloat16 on a processor that has none, or no matrix units for it."""

import pytest

import cselab
from cselab.experiments import cache
from cselab.experiments.train import Trained
from cselab.training import precision


@pytest.fixture
def machine(monkeypatch):
    """`machine(fast)`: a machine with or without fast bfloat16, which has said nothing yet."""

    def be(fast: bool) -> None:
        monkeypatch.setattr(cache, "has_bfloat16", lambda device: fast)
        cache.warn_once.cache_clear()

    return be


@pytest.mark.parametrize("fast", [True, False])
def test_without_fast_bfloat16_float32_is_used_and_one_line_says_so(
    fast, machine, tmp_path, capsys
):
    """Prevents minutes at 0.3 GFLOP/s, a tower that still asks for it, and a silent change."""
    machine(fast)
    lab = cselab.open_lab("test", outputs=tmp_path, device="cpu", bf16=True)
    for name in ("jtcse", "simcse"):
        run = lab.cache.with_fast_precision(lab.run(name))
        asked = [value for place, value, _ in run.walk() if place[-1] == "bf16"]
        assert len(asked) == (3 if name == "jtcse" else 1)
        assert set(asked) == {fast}
        made = Trained(lab.pretrained(), run.method)
        assert made.precision == ("bfloat16" if fast else "float32")
    said = capsys.readouterr().err
    message = "bf16=True: this machine has no fast bfloat16, so float32 is used"
    assert (said.count("\n"), message in said) == ((0, False) if fast else (1, True))


@pytest.mark.parametrize(("narrow", "found"), [(400.0, False), (1.5, True)])
def test_the_slower_product_decides(monkeypatch, narrow, found):
    """Prevents a threshold that a busy machine crosses: the ratio is hundreds or near one."""
    taken = iter([1.0, narrow])
    monkeypatch.setattr(precision, "_seconds", lambda matrix: next(taken))
    assert precision.has_bfloat16.__wrapped__("cpu") is found


@pytest.mark.parametrize("units", [True, False])
def test_auto_is_what_the_processor_has_and_nothing_is_timed(units, monkeypatch, tmp_path, capsys):
    """Prevents keys that change with the load of the machine, a line about a setting that nobody
    set, and bfloat16 on a processor where it is slower."""
    known = {"amx_bf16": units, "avx512_bf16": True}
    monkeypatch.setattr(precision.torch.cpu, "get_capabilities", lambda: known)
    monkeypatch.setattr(cache, "has_bfloat16", lambda device: pytest.fail("timed"))
    lab = cselab.open_lab("test", outputs=tmp_path, device="cpu", bf16="auto")
    run = lab.cache.with_fast_precision(lab.run("jtcse"))
    assert {value for place, value, _ in run.walk() if place[-1] == "bf16"} == {units}
    assert not capsys.readouterr().err

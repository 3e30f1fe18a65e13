"""`rollcall run`: which executor it uses."""

import pytest

from benchmark.cli import run
from benchmark.cli.run import Executor, executor_of
from benchmark.config.errors import SettingError


@pytest.mark.parametrize("asked", [None, Executor.ray, Executor.inline])
def test_with_ray_the_default_is_ray(asked, monkeypatch, capsys):
    monkeypatch.setattr(run, "find_spec", lambda name: object())
    assert executor_of(asked) is (asked or Executor.ray)
    assert capsys.readouterr().err == ""


def test_without_ray_the_default_is_inline_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(run, "find_spec", lambda name: None)
    assert executor_of(Executor.inline) is Executor.inline
    assert capsys.readouterr().err == ""
    assert executor_of(None) is Executor.inline
    assert "Ray is not installed: trials run one after another." in capsys.readouterr().err
    with pytest.raises(SettingError, match=r"^--executor ray needs Ray: pip install 'rollcall\[ray\]'$"):
        executor_of(Executor.ray)

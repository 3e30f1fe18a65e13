"""`rollcall run`: which executor it uses, options of a cluster, and results of other code."""

import json

import pytest
from command import rollcall, write

from rollcall.benchmark.cli.executor import ray_options
from rollcall.benchmark.cli.shared import err
from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.sweep import pool
from rollcall.benchmark.sweep.pool import Pool


@pytest.mark.parametrize("asked", [None, "ray", "inline"])
def test_with_ray_the_default_is_ray(asked, monkeypatch, capsys):
    monkeypatch.setattr(pool, "find_spec", lambda name: object())
    assert Pool.of(asked, ray_options(), err).executor == (asked or "ray")
    assert capsys.readouterr().err == ""


def test_without_ray_the_default_is_inline_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr(pool, "find_spec", lambda name: None)
    assert Pool.of("inline", ray_options(), err).executor == "inline"
    assert capsys.readouterr().err == ""
    assert Pool.of(None, ray_options(), err).executor == "inline"
    assert "Ray is not installed: trials run one after another." in capsys.readouterr().err
    with pytest.raises(SettingError, match=r"^--executor ray needs Ray: pip install '.\[ray\]'$"):
        Pool.of("ray", ray_options(), err)


def test_what_other_code_computed_is_told_and_redone_on_request(store, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(pool, "find_spec", lambda name: None)  # without MLflow
    arguments = ("run", write(tmp_path), "--executor", "inline")
    rollcall(capsys, *arguments)
    files = {file.parent.name.rpartition("-")[0]: file for file in store.rglob("status.json")}
    written = {name: json.loads(file.read_text()) for name, file in files.items()}
    modules = {"algorithms.fedpbc", "algorithms.base", "participation.independent", "tasks.known_optimum"}
    assert modules <= set(written["fedpbc-seed0"]["code"])
    assert "algorithms.fedpbc" not in written["fedavg-seed0"]["code"]

    other = json.loads(json.dumps(written["fedpbc-seed1"]))
    other["code"]["algorithms.fedpbc"] = "0123456789"
    files["fedpbc-seed1"].write_text(json.dumps(other))
    _, out, err = rollcall(capsys, *arguments)
    assert "Computed by other code of algorithms.fedpbc: 1 finished trial; results are kept" in err
    assert "0 run now, 4 before" in out
    assert json.loads(files["fedpbc-seed1"].read_text()) == other

    _, out, err = rollcall(capsys, *arguments, "--redo-changed")
    assert "Computed by other code of algorithms.fedpbc: 1 finished trial; run again now" in err
    assert "1 run now, 3 before" in out
    after = {name: json.loads(file.read_text()) for name, file in files.items()}
    assert after["fedpbc-seed1"]["code"] == written["fedpbc-seed1"]["code"]
    assert after["fedpbc-seed1"]["updated"] > written["fedpbc-seed1"]["updated"]
    assert {name for name in after if after[name] == written[name]} == set(files) - {"fedpbc-seed1"}


def test_options_of_ray_choose_ray_and_refuse_inline(monkeypatch):
    monkeypatch.setattr(pool, "find_spec", lambda name: object())
    assert Pool.of(None, ray_options(storage="s3://bucket"), err).executor == "ray"
    with pytest.raises(SettingError, match=r"^--executor inline is not allowed with --storage; must be ray$"):
        Pool.of("inline", ray_options(storage="s3://bucket"), err)
    assert Pool.of(None, ray_options(gpus_per_trial="0.5"), err).executor == "ray"
    for options, name in (({"gpus_per_trial": "0.5"}, "gpus-per-trial"), ({"retries": 2}, "retries")):
        with pytest.raises(SettingError, match=f"^--executor inline is not allowed with --{name}; must be ray$"):
            Pool.of("inline", ray_options(**options), err)
    assert Pool.of("inline", ray_options(retries=0), err).executor == "inline"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--gpus-per-trial", "half", "gpus-per-trial: 'half' is not allowed; must be a number from 0"),
        ("--gpus-per-trial", "-1", "gpus-per-trial: '-1' is not allowed"),
        ("--checkpoint-every", "often", "checkpoint-every: 'often' is not allowed; must be a number above 0 with s"),
        ("--storage", "nowhere://runs", "storage: 'nowhere://runs' is not allowed"),
        ("--ray-address", "127.0.0.1:1", "ray-address: no Ray cluster answers at '127.0.0.1:1'"),
    ],
)
def test_refusals(store, tmp_path, capsys, option, value, message):
    code, _, err = rollcall(capsys, "run", write(tmp_path), f"{option}={value}")
    assert code != 0
    assert message in err
    assert not list(store.glob("*/*/"))

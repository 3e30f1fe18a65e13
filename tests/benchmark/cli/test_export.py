"""`rollcall export`: the file holds the trained model, and the printed lines load it."""

import torch
from command import rollcall
from torch import nn

from rollcall import simulate

TRIAL = {
    "task": {"name": "digits", "clients": 6, "partition": "iid", "model": "linear"},
    "algorithm": "fedavg",
    "rounds": 2,
}


def test_export(capsys, tmp_path):
    result = simulate(TRIAL, folder=tmp_path / "run")
    file = tmp_path / "model.pt"
    code, out, _ = rollcall(capsys, "export", str(tmp_path / "run"), "--to", str(file))
    assert code == 0
    assert f"Wrote {file}: 2 tensors, 650 numbers." in out
    lines = [line.strip() for line in out.splitlines() if line.startswith("  ")]
    names = {
        "torch": torch,
        "rollcall": __import__("rollcall"),
        "network": nn.Sequential(nn.Flatten(), nn.Linear(64, 10)),
    }
    for line in lines:
        exec(line, names)
    expected = torch.from_numpy(result.model)
    for module in (names["module"], names["network"]):
        assert torch.equal(torch.cat([parameter.detach().flatten() for parameter in module.parameters()]), expected)


def test_a_run_without_a_model(capsys, tmp_path):
    code, _, err = rollcall(capsys, "export", str(tmp_path))
    assert code == 2
    assert "is not a run folder" in err


def test_a_run_of_an_analysis(capsys, tmp_path):
    experiment = tmp_path / "weights.yaml"
    experiment.write_text("title: Weights\npanels: {a: {analysis: {name: class_weights_sorted}}}\n")
    rollcall(capsys, "run", str(experiment), "--executor", "inline", "--store", str(tmp_path))
    (folder,) = (file.parent for file in (tmp_path / "weights").glob("*/trial.yaml"))
    code, _, err = rollcall(capsys, "export", str(folder))
    assert code == 2
    assert err == (f"error: {folder} is the run folder of an analysis, which trains no model; see its metrics.jsonl\n")


def test_the_folder_of_the_file_is_made(capsys, tmp_path):
    simulate(TRIAL, folder=tmp_path / "run")
    file = tmp_path / "new" / "model.pt"
    assert rollcall(capsys, "export", str(tmp_path / "run"), "--to", str(file))[0] == 0
    assert set(torch.load(file)) == {"network.1.weight", "network.1.bias"}
    code, _, err = rollcall(capsys, "export", str(tmp_path / "run"), "--to", str(tmp_path / "new"))
    assert (code, err) == (2, f"error: {tmp_path}/new: cannot be read or written (Is a directory)\n")

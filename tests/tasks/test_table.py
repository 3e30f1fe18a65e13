"""A table with natural clients, by hand: rows of three towns, of which one is too small."""

import numpy as np
import pandas as pd
import pytest
import torch

from rollcall import SettingError, simulate
from rollcall.benchmark.config.trial import Trial
from rollcall.benchmark.federation.build import build
from rollcall.participation.recording import load
from rollcall.tasks import table

# Town, age, colour, label: four rows of Ash, two of Birch, one of Cedar.
ROWS = [
    *(("Ash", 10.0, "red", "no"), ("Birch", 40.0, "blue", "yes"), ("Ash", 20.0, "blue", "no")),
    *(("Ash", 30.0, "red", "yes"), ("Cedar", 99.0, "red", "yes"), ("Birch", 60.0, "blue", "yes")),
    ("Ash", 40.0, "red", "yes"),
]


@pytest.fixture
def towns(tmp_path):
    path = tmp_path / "towns.csv"
    pd.DataFrame(ROWS, columns=["town", "age", "colour", "buys"]).to_csv(path, index=False)
    return str(path)


def options(towns, **changes):
    return {"file": towns, "label": "buys", "client": "town", "at_least": 2, "test": 0.0} | changes


def test_by_hand(towns):
    with pytest.warns(UserWarning, match=r"left out 1 rows of 1 clients with fewer than 2 rows"):
        task, data = table(0, **options(towns))
    x, y = data.splits["train"]
    ages = np.array([10, 20, 30, 40, 40, 60.0])  # of Ash, then Birch
    standard = (ages - 200 / 6) / np.sqrt(np.mean((ages - 200 / 6) ** 2))
    blue = [0, 1, 0, 0, 1, 1]
    assert x.numpy() == pytest.approx(np.stack([standard, blue, 1 - np.array(blue)], axis=1), abs=1e-6)
    assert y.tolist() == [0, 0, 1, 1, 1, 1]
    assert [part.tolist() for part in data.parts] == [[0, 1, 2, 3], [4, 5]]
    assert data.histogram.tolist() == [[2, 2], [0, 2]]
    assert data.classes.tolist() == [[0.5, 0.5], [0, 1]]
    assert task(x).shape == (6, 2)


@pytest.mark.filterwarnings("ignore:.*left out")
def test_every_client_holds_out_its_share_and_training_rows_alone_standardise(towns):
    _, data = table(3, **options(towns, test=0.3, validation=0.4, features=["age"]))
    held = {split: data.owner(split).tolist() for split in ("train", "validation", "test")}
    assert held == {"train": [0, 0, 1, 1], "validation": [0], "test": [0]}
    ages = torch.cat([data.splits[split][0] for split in held])[:, 0]
    assert ages[:4].mean().item() == pytest.approx(0, abs=1e-6)
    assert ages[:4].std(correction=0).item() == pytest.approx(1, abs=1e-6)
    again = [table(seed, **options(towns, test=0.25, features=["age"]))[1].splits["test"][1] for seed in range(20)]
    assert len({tuple(one.tolist()) for one in again}) > 1


@pytest.mark.filterwarnings("ignore:.*left out")
def test_regression_and_a_run(towns):
    """One full step from x = 0 is a step along the mean of feature times target."""
    ages = options(towns, label="age", features=["buys"], outcome="amounts")
    trial = {"task": {"name": "table", **ages}, "algorithm": "fedavg", "rounds": 1, "numerics": {"dtype": "float64"}}
    trial |= {"local": {"steps": 1, "lr": 0.5, "batch_size": "full"}}
    task, data = table(0, **ages)
    w, b = (p.detach().double() for p in task.parameters())
    x, y = (column.double() for column in data.splits["train"])
    expected = torch.zeros(3, dtype=torch.float64)
    for part in data.parts:
        away = x[part] @ w[0] + b - y[part]
        g = torch.cat([2 * (away[:, None] * x[part]).mean(dim=0), 2 * away.mean(dim=0, keepdim=True)])
        expected += (torch.cat([w[0], b]) - 0.5 * g) / 2
    assert simulate(trial).model == pytest.approx(expected.numpy(), abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"label": "price"}, r"label: 'price' is not allowed; must be a column of its own of .*: town, age"),
        ({"features": ["town"]}, "features: 'town' is not allowed"),
        ({"client": "buys"}, "client: 'buys' is not allowed; must be a column of its own"),
        ({"at_least": 9}, "at_least: 9 is not allowed; no client in .* has as many rows"),
        ({"test": 0.8, "validation": 0.2}, r"test: 0.8 is not allowed; must be in \[0, 0.7\]"),
        ({"file": "no_such_package:x.csv"}, "the package no_such_package is not installed"),
        ({"file": "absent.csv"}, "file: 'absent.csv' is not allowed; must be a readable table"),
    ],
)
def test_refusals(towns, changes, complaint):
    with pytest.raises(ValueError, match=complaint):
        table(0, **options(towns, **changes))
    trial = {"task": {"name": "table", **options(towns, **changes)}, "algorithm": "fedavg", "rounds": 1}
    with pytest.raises(SettingError, match=complaint.partition(":")[0]):
        simulate(trial)


def numbered(tmp_path, columns, name="own.csv", **changes):
    """The task of a table of forty rows, with these columns beside x, y and site."""
    rows = pd.DataFrame({"x": np.arange(40) / 8, "y": np.arange(40) % 2, "site": np.repeat(["NA", "EU"], 20)})
    rows = rows.assign(**columns)
    rows.to_csv(tmp_path / name, index=False, sep=";" if name.endswith("txt") else ",")
    return table(0, **{"file": str(tmp_path / name), "label": "y", "client": "site"} | changes)


def with_one(values, row, odd):
    return [odd if i == row else str(value) for i, value in enumerate(values)]


def test_shares_of_rows_are_exact(tmp_path):
    """int(0.7 * 90) is 62, for want of the last bit."""
    pd.DataFrame({"x": range(90), "y": [0, 1] * 45, "site": "a"}).to_csv(tmp_path / "own.csv", index=False)
    for test, held_out in ((0.7, 63), (0.72, 64)):
        data = table(0, file=str(tmp_path / "own.csv"), label="y", client="site", test=test)[1]
        assert len(data.splits["test"][0]) == held_out


@pytest.mark.parametrize("split", ["test", "validation"])
def test_a_split_without_rows_is_refused(tmp_path, split):
    """A tenth of nine rows is none."""
    pd.DataFrame({"x": range(18), "y": [0, 1] * 9, "site": ["a", "b"] * 9}).to_csv(tmp_path / "own.csv", index=False)
    with pytest.raises(ValueError, match=rf"^{split}: 0.1 is not allowed; no client would hold out a row"):
        table(
            0,
            **{
                "file": str(tmp_path / "own.csv"),
                "label": "y",
                "client": "site",
                "at_least": 5,
                "test": 0.2,
                split: 0.1,
            },
        )


WHOLE = np.arange(40) * 137 + 30000


@pytest.mark.parametrize("name", ["own.csv", "own.txt", "own.csv.gz"])
def test_clients_are_named_as_they_are_written(tmp_path, name):
    data = numbered(tmp_path, {}, name)[1]
    assert data.names == ("EU", "NA")
    assert data.parts.sizes.tolist() == [16, 16]
    assert numbered(tmp_path, {"site": np.repeat(["007", "1e3"], 20)}, name)[1].names == ("007", "1e3")


@pytest.mark.parametrize(
    ("columns", "options", "complaint"),
    [
        ({"x": with_one(range(40), 3, "n/k")}, {}, "x has 39 numbers, and 'n/k' in row 4 of the data; correct it, leave x out of"),
        ({"x": with_one(range(40), 3, "")}, {}, "has missing values in x; fill them"),
        ({"site": with_one(["a"] * 40, 3, "")}, {}, "has missing values in site"),
        ({"x": [f"{i % 4},37" for i in range(40)]}, {}, "x has '0,37'; write numbers as 0.37, leave x out"),
        ({"note": [f"case {i}" for i in range(40)]}, {}, "note has 40 different texts in 40 rows, which would be a feature each"),
        ({"y": WHOLE}, {}, "outcome: is missing; y has 40 different whole numbers"),
        ({"y": np.arange(40) % 3}, {}, "outcome: is missing; y has 3 different whole numbers"),
        ({"y": with_one(WHOLE / 7, 0, "none")}, {}, "y has 39 numbers, and 'none' in row 1 of the data; correct it, or set outcome"),
        ({"y": ["yes", "no"] * 20}, {"outcome": "amounts"}, "outcome: 'amounts' is not allowed; y has no numbers"),
        ({"y": ["yes"] * 40}, {}, "label: 'y' is not allowed; it has one value only, 'yes'"),
        ({}, {"features": []}, "must have a column to predict y from"),
        ({}, {"categories": ["z"]}, "categories: 'z' is not allowed; must be one of the features"),
    ],
)  # fmt: skip
def test_what_is_never_guessed(tmp_path, columns, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        numbered(tmp_path, columns, **options)


def test_blank_lines_do_not_count_as_rows(tmp_path):
    """They are no rows, so a line number would be wrong after one."""
    rows = [f"{i},{i % 2},a" for i in range(6)]
    (tmp_path / "own.csv").write_text("\n".join(["x,y,site", rows[0], "", *rows[1:3], "oops,1,a", *rows[3:]]))
    with pytest.raises(ValueError, match=r"'oops' in row 4 of the data"):
        table(0, file=str(tmp_path / "own.csv"), label="y", client="site", at_least=1)


def test_numbers_as_categories_a_constant_and_a_client_without_samples(tmp_path):
    sites = np.repeat(["B", "A", "C"], [20, 5, 15])
    columns = {"x": np.arange(40) % 3, "constant": 0.3, "site": sites}
    with pytest.warns(UserWarning, match="left out 5 rows of 1 clients"):
        data = numbered(tmp_path, columns, categories=["x"], empty_clients="keep", test=0.0)[1]
    assert data.names == ("A", "B", "C")
    assert data.parts.sizes.tolist() == [0, 20, 15]
    rows = [*range(20), *range(25, 40)]
    expected = [[0, *(row % 3 == value for value in range(3))] for row in rows]
    np.testing.assert_allclose(data.splits["train"][0], expected, atol=1e-12)


def test_a_log_is_joined_by_name(tmp_path):
    """EU is client 0 and NA client 1, in the table and in the log; the log has a third site."""
    (tmp_path / "log.csv").write_text("client,start,end\nNA,0,600\nEU,600,1200\nSA,0,1200\n")
    numbered(tmp_path, {})
    task = {"name": "table", "file": str(tmp_path / "own.csv"), "label": "y", "client": "site"}
    log = {"name": "trace", "mask": str(tmp_path / "log.csv"), "round_length": 600}
    trial = Trial.read({"task": task, "participation": log, "algorithm": "fedavg", "rounds": 2})
    active = build(trial).participation.active
    assert [active(t).tolist() for t in range(2)] == [[1], [0]]


@pytest.mark.parametrize(
    ("header", "message"),
    [("town,age,buys,buys", "it has two columns 'buys'"), (",town,age,buys", "it has a column without a name")],
)
@pytest.mark.parametrize("comma", [",", ";"])
def test_a_column_twice_or_without_a_name_is_no_feature(header, message, comma, tmp_path):
    """An index that pandas wrote, or the label once more, would say what the label is."""
    path = tmp_path / "towns.csv"
    path.write_text("\n".join([header, *(f"{i},{i % 2},{i},{i % 2}" for i in range(6))]).replace(",", comma))
    with pytest.raises(ValueError, match=message):
        table(0, file=str(path), label="buys", client="town", at_least=1)


@pytest.mark.parametrize("ending", ["gz", "xz", "zip"])
def test_a_download_that_was_cut_off_is_no_readable_table(towns, tmp_path, ending):
    file = tmp_path / f"cut.csv.{ending}"
    pd.read_csv(towns).to_csv(file, index=False)
    file.write_bytes(file.read_bytes()[:-12])
    with pytest.raises(ValueError, match="must be a readable table"):
        table(0, **options(towns, file=str(file)))
    with pytest.raises(ValueError, match="must be a readable table"):
        load(file)

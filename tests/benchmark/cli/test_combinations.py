"""Options that would have no effect beside another one are refused with one line."""

import pytest
from command import rollcall, write


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("leaderboard", "FILE", "--json", "--format", "csv"), "--format is not allowed with --json"),
        (("leaderboard", "fedpbc/table2", "--mine", "--archive", "DIR"), "--archive is not allowed with --mine"),
        (("leaderboard", "fedpbc/table2", "--best-by", "a=max", "--archive", "DIR"), "--archive is not allowed with --best-by"),
        (("leaderboard", "FILE", "--archive", "DIR"), "--archive is not allowed with an experiment of no paper"),
        (("status", "--follow", "--json"), "--follow is not allowed with --json"),
        (("participation", "ROLL", "--only", "panel=x"), "--only is not allowed with a file of a participation model"),
        (("participation", "ROLL", "--picture", "separation"), "--picture is not allowed without --plot"),
    ],
)  # fmt: skip
def test_an_option_without_effect_is_refused(arguments, complaint, store, tmp_path, capsys):
    (tmp_path / "roll.yaml").write_text("clients: 4\nparticipation: {name: bernoulli, probability: 0.5}\n")
    paths = {"FILE": write(tmp_path), "ROLL": str(tmp_path / "roll.yaml"), "DIR": str(tmp_path)}
    code, _, err = rollcall(capsys, *(paths.get(argument, argument) for argument in arguments))
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith(f"error: {complaint}; "), err

"""What tells rows apart: as little as possible, and nothing that rows have in common."""

from rollcall.leaderboard.ranking.axes import Axis
from rollcall.leaderboard.ranking.distinctions import distinctions


def test_an_option_is_shown_if_rows_of_that_choice_differ_in_it():
    cells = [
        {"algorithm": "a", "participation": "bernoulli", "participation.delta": "0.1"},
        {"algorithm": "a", "participation": "cyclic", "participation.length": "100"},
    ]
    assert distinctions(cells, []) == [("a", {"participation": "bernoulli"}), ("a", {"participation": "cyclic"})]
    cells.append(cells[0] | {"participation.delta": "0.2"})
    shown = [settings for _, settings in distinctions(cells, [])]
    assert shown == [
        {"participation": "bernoulli", "participation.delta": "0.1"},
        {"participation": "cyclic", "participation.delta": ""},
        {"participation": "bernoulli", "participation.delta": "0.2"},
    ]


def test_labels_stand_for_the_settings_behind_them():
    paths = frozenset({"participation"})
    often = (("participation", "bernoulli"), ("participation.p", "0.9"))
    night = (("participation", "cyclic"), ("participation.p", "0.1"))
    axis = Axis("participation", paths, {often: "often", night: "night"})
    cells = [{"algorithm": "a", "local.lr": lr, **dict(where)} for where in (often, night) for lr in ("1", "2")]
    assert [settings for _, settings in distinctions(cells, [axis])] == [
        {"participation": "often", "local.lr": "1"},
        {"participation": "often", "local.lr": "2"},
        {"participation": "night", "local.lr": "1"},
        {"participation": "night", "local.lr": "2"},
    ]
    assert [settings for _, settings in distinctions(cells[:2], [axis])] == [{"local.lr": "1"}, {"local.lr": "2"}]
    cells[0]["participation.p"] = "0.5"  # off the axis
    shown = [settings for _, settings in distinctions(cells, [axis])]
    assert shown[0] == {"local.lr": "1", "participation": "bernoulli", "participation.p": "0.5"}
    assert shown[1] == {"local.lr": "2", "participation": "bernoulli", "participation.p": "0.9"}


def test_an_axis_with_one_label_hides_no_setting():
    """As the panel of a file without panels: overrides give its methods rates of their own."""
    cells = [{"algorithm": name, "local.lr": lr} for name, lr in (("a", "1"), ("b", "3"))]
    panel = Axis("panel", frozenset({"algorithm", "local"}), {tuple(sorted(cell.items())): "" for cell in cells})
    assert distinctions(cells, [panel]) == [("a", {"local.lr": "1"}), ("b", {"local.lr": "3"})]


def test_methods_show_their_options_unless_the_file_names_them():
    cells = [{"algorithm": "fedau", "algorithm.cutoff": cutoff} for cutoff in ("5", "50")]
    parts = [tuple(sorted(cell.items())) for cell in cells]
    in_list = Axis("algorithm", frozenset({"algorithm"}), dict(zip(parts, ("fedau", "fedau#2"), strict=True)))
    assert [method for method, _ in distinctions(cells, [in_list])] == ["fedau cutoff=5", "fedau cutoff=50"]
    named = Axis("algorithm", frozenset({"algorithm"}), dict(zip(parts, ("short", "long"), strict=True)))
    assert distinctions(cells, [named]) == [("short", {}), ("long", {})]


def test_two_methods_of_one_class_name_show_their_files():
    cells = [{"algorithm": name} for name in ("one.py:Half", "two.py:Half", "one.py:Whole", "fedavg")]
    assert [method for method, _ in distinctions(cells, [])] == ["one.py:Half", "two.py:Half", "Whole", "fedavg"]


def test_rounds_do_not_tell_rows_apart():
    assert distinctions([{"algorithm": "a", "rounds": rounds} for rounds in ("10", "20")], []) == [("a", {})] * 2

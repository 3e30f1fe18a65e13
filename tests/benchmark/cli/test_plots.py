"""Pictures are drawn by whatever the entry-point group names."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from benchmark.cli import plots
from benchmark.config.errors import SettingError


class Recorded:
    """Stands for a matplotlib figure; writes what it was drawn from."""

    def __init__(self, *content):
        self.content, self.canvas = content, self

    def get_supported_filetypes(self):
        return {"png": "", "svg": ""}

    def savefig(self, file, dpi):
        file.write_text(f"{self.content} at {dpi}")


def installed(monkeypatch, *entries):
    """Makes these the entry points of the group."""
    monkeypatch.setattr(plots, "entry_points", lambda **sought: EntryPoints(entries).select(**sought))


def test_a_picture_is_drawn_by_its_entry_point(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(plots, "Recorded", Recorded, raising=False)
    other = EntryPoint("costs", "nowhere:costs", plots.GROUP)
    installed(monkeypatch, other, EntryPoint("partition", "benchmark.cli.plots:Recorded", plots.GROUP))
    plots.draw("partition", tmp_path / "new" / "a.png", 1, 2)
    assert (tmp_path / "new" / "a.png").read_text() == "(1, 2) at 150"
    assert "partition: " in capsys.readouterr().err


def test_without_an_entry_point_the_error_says_what_to_do(tmp_path, monkeypatch):
    installed(monkeypatch, EntryPoint("partition", "nowhere:x", "another.group"))
    with pytest.raises(SettingError, match="no installed package draws 'partition'; reinstall rollcall"):
        plots.draw("partition", tmp_path / "a.png")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a.docx", "a", "a.png.gz"])
def test_a_format_that_cannot_be_drawn_is_refused(name, tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "Recorded", Recorded, raising=False)
    installed(monkeypatch, EntryPoint("partition", "benchmark.cli.plots:Recorded", plots.GROUP))
    with pytest.raises(SettingError, match=rf"^plot: '.*{name}' is not allowed; must end in one of \.png, \.svg$"):
        plots.draw("partition", tmp_path / "new" / name)
    assert not list(tmp_path.iterdir())
    plots.draw("partition", tmp_path / "A.PNG")

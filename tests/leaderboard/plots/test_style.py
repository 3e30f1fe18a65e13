"""Lines are told apart, and a legend names each once."""

from matplotlib.figure import Figure

from rollcall.leaderboard.plots.style import COLOURS, legend, line_style, svg


def test_every_line_has_a_look_of_its_own():
    looks = [line_style(index) for index in range(3 * len(COLOURS))]
    assert len(set(looks)) == len(looks)
    assert [style for _, style in looks[: len(COLOURS)]] == ["-"] * len(COLOURS)


def test_a_legend_names_each_line_once():
    figure = Figure()
    for axes in figure.subplots(1, 2):
        axes.plot([0, 1], label="both")
    legend(figure, least=2)
    assert figure.legends == []
    legend(figure)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["both"]


def test_svg_is_an_element():
    text = svg(Figure())
    assert text.startswith("<svg")
    assert text.rstrip().endswith("</svg>")

"""The look of all figures, the parts that they share, and how a chart becomes a file.

Importing this module makes `rollcall` the theme of Altair; `alt.theme.enable("default")` undoes it.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from rollcall.benchmark.config.errors import SettingError
from rollcall.benchmark.federation.run_folder import replacing
from rollcall.leaderboard.names import COLOURS, DASHES, SHAPES, Style

WIDTH, HEIGHT = 240, 170
"""Of one of several plots, in pixels."""

BLUE, VERMILION, GREY = COLOURS["blue"], COLOURS["vermilion"], "#666666"

FORMATS = (".svg", ".pdf", ".png")

DARK = """<style>@media (prefers-color-scheme: dark) {
svg > rect[fill="white"] {fill: none} text {fill: #dddddd} [stroke="#e5e5e5"] {stroke: #444444}
[stroke="#000000"] {stroke: #f2f2f2} [fill="#000000"] {fill: #f2f2f2}
}</style>"""
"""Rules of an SVG file for a page with a dark background."""

alt.data_transformers.disable_max_rows()


@alt.theme.register("rollcall", enable=True)
def theme() -> alt.theme.ThemeConfig:
    """Fonts, grid and legend of all figures."""
    return {
        "background": "white",
        "padding": {"left": 5, "top": 5, "right": 25, "bottom": 5},  # a browser's font may be wider than the drawing's
        "config": {
            "font": "Arial, Helvetica, Liberation Sans, sans-serif",
            "axis": {"labelFontSize": 11, "titleFontSize": 12, "titleFontWeight": "normal", "gridColor": "#e5e5e5",
                     "labelFlush": False},
            "legend": {"labelFontSize": 12, "labelLimit": 400, "title": None, "symbolType": "stroke",
                       "symbolSize": 400, "symbolOpacity": 1, "symbolStrokeWidth": 2},
            "title": {"fontSize": 12, "fontWeight": "normal", "subtitleFontSize": 11, "subtitleColor": "#a03000"},
            "view": {"stroke": None},
            "text": {"fontSize": 11},
            "line": {"strokeWidth": 2},
            "point": {"filled": True, "opacity": 1, "size": 40},
        },
    }  # fmt: skip


def axis(
    kind: type[Any], field: str, title: str | None = None, domain: Sequence[float] | None = None, log: bool = False,
    **options: Any,
) -> Any:  # fmt: skip
    """An axis of numbers: `alt.X` or `alt.Y` of a field.

    The domain has its ends, by default those of the data, rounded; the options are those of `alt.Axis`.
    """
    scale = alt.Scale(zero=False) if domain is None else alt.Scale(zero=False, domain=[*domain], nice=False)
    if log:
        low, high = domain or (1, 1)
        options = {"format": "~e" if high > 1e4 * low else "~g", "tickCount": 6, "labelOverlap": True} | options
        scale.type = "log"
    return kind(f"{field}:Q", title=title, scale=scale, axis=alt.Axis(**options))


def rows_axis(field: str = "line", title: str | None = None, **options: Any) -> alt.Y:
    """A y axis with a row for each name, in the order of the data."""
    return alt.Y(f"{field}:N", title=title, sort=None, axis=alt.Axis(labelLimit=720, **{"grid": True} | options))


def by_line(channel: str, looks: Mapping[str, Style]) -> Any:
    """The channel `color`, `strokeDash` or `shape` of each line, with a legend if there are several."""
    channels: dict[str, tuple[Any, list[Any]]] = {
        "color": (alt.Color, [one.colour for one in looks.values()]),
        "strokeDash": (alt.StrokeDash, [list(one.dash) for one in looks.values()]),
        "shape": (alt.Shape, [one.shape for one in looks.values()]),
    }
    kind, values = channels[channel]
    scale = alt.Scale(domain=[*looks], range=values)
    return kind("line:N", scale=scale, legend=alt.Undefined if len(looks) > 1 else None)


def lines(
    looks: Mapping[str, Style], x: alt.X, y: alt.Y, *, bands: bool = False, points: bool | list[str] = False
) -> list[alt.Chart]:
    """Layers of lines through `value` over `x`, in the style of their `line`.

    With `bands` from `low` to `high`; and with a point for each row of all lines, or of those in `points`.
    """
    base = alt.Chart().encode(x, y, by_line("color", looks))
    mark: dict[str, Any] = {"clip": True, "interpolate": "linear"}
    parts = [base.mark_area(opacity=0.15, **mark).encode(of("low", y), alt.Y2("high"))] if bands else []
    parts.append(base.mark_line(**mark).encode(by_line("strokeDash", looks)))
    marks = base.mark_point(clip=True, size=40)
    if isinstance(points, list):
        marks = marks.transform_filter(alt.FieldOneOfPredicate("line", points))
    return [*parts, *([marks] if points else [])]


def intervals(x: alt.X, y: alt.Y, data: Any = alt.Undefined, **look: Any) -> list[alt.Chart]:
    """Layers of points at `value`, with rules from `low` to `high`; `look` are further channels."""
    base = alt.Chart(data).encode(x, y, **look)
    return [base.mark_rule(size=2).encode(of("low", x), alt.X2("high")), base.mark_point()]


def of(field: str, axis: Any) -> Any:
    """The same axis with another field."""
    made = axis.copy()
    made.shorthand = f"{field}:Q"
    return made


def grid(
    views: Sequence[Any], alt_text: str, *, data: Any = alt.Undefined, columns: int = 3, caption: str = ""
) -> alt.ConcatChart:
    """Plots in a grid with one legend, and a caption below.

    Args:
        views: the plots.
        alt_text: what the figure shows, in words.
        data: rows of all plots; numbers are kept to six digits.
        columns: most plots in a row.
        caption: how to read it.
    """
    if isinstance(data, pd.DataFrame):
        numbers = data.select_dtypes(float)
        power = 10.0 ** (5 - np.floor(np.log10(numbers.abs().mask(numbers == 0, 1.0).to_numpy())))
        data = data.copy()
        data[numbers.columns] = (numbers * power).round() / power
    text = textwrap.wrap(caption, 40 * min(columns, len(views)) + 30)
    title = alt.Title(text=text, anchor="start", orient="bottom", fontSize=11, offset=12, color=GREY) if caption else ""
    return alt.concat(*views, columns=columns, data=data, description=alt_text, title=title or alt.Undefined)


def room(values: Iterable[float], log: bool = False, share: float = 0.03) -> tuple[float, float]:
    """The ends of an axis that shows these values, with some room."""
    numbers = np.fromiter(values, float)
    numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not log))]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else ((0.1, 1.0) if log else (0.0, 1.0))
    if log:
        return low / (1 + 4 * share), high * (1 + 4 * share)
    space = share * (high - low) if high > low else 0.1 * abs(high) or 1.0
    return low - space, high + space


def in_turn(names: Iterable[str], without: Iterable[str] = ()) -> dict[str, Style]:
    """Looks of lines that are no methods, without some colours."""
    colours = [one for one in COLOURS.values() if one not in {*without}] or list(COLOURS.values())
    shapes = zip(DASHES.values(), SHAPES[2:], strict=False)
    looks = [Style(colour, dash, shape) for dash, shape in shapes for colour in colours]
    return {name: looks[index % len(looks)] for index, name in enumerate(names)}


def _spec(chart: alt.ConcatChart) -> tuple[str, str]:
    """The specification as JSON, and a comment by which an SVG file tells what it was drawn from."""
    spec = json.dumps(chart.to_dict(validate=False))
    return spec, f"<!-- {sha256(spec.encode()).hexdigest()[:16]} -->"


def _shows(file: Path, key: str) -> bool:
    """Whether an SVG file is there, whole, and was drawn from the chart with this key."""
    text = file.read_text("utf-8", errors="replace") if file.is_file() else ""
    return key in text[:1000] and text.endswith("</svg>")


def save(chart: alt.ConcatChart, *paths: Path | str) -> None:
    """Write a chart into files, whose folders are made; the ending of a file decides its format.

    SVG files of an equal chart are kept, if nothing else is to be written: other formats do not say what they show.

    Raises:
        SettingError: an ending is none of `FORMATS`.
    """
    files = {Path(path): Path(path).suffix.lower() for path in paths}
    for file, ending in files.items():
        if ending not in FORMATS:
            raise SettingError(f"plot: {str(file)!r} is not allowed; must end in {', '.join(FORMATS)}")
    spec, key = _spec(chart)
    if all(ending == ".svg" and _shows(file, key) for file, ending in files.items()):
        return
    import vl_convert  # starts a JavaScript engine

    text = svg = vl_convert.vegalite_to_svg(spec)
    # The clipping paths of all drawings of a process are numbered on; ours have the same names in every run.
    clips: dict[str, str] = {}
    svg = re.sub(
        r'(?<=id=")clip\d+|(?<=url\(#)clip\d+',
        lambda found: clips.setdefault(found[0], f"clip-{key[5:11]}-{len(clips)}"),
        svg,
    )
    title, *rest = re.split(r"(?<!Fig)\. ", str(chart.description), maxsplit=1)
    about = f"{key}<title>{escape(title)}</title><desc>{escape(rest[0] if rest else title)}</desc>{DARK}"
    svg = svg.replace(">", f">{about}", 1).replace("<svg ", '<svg role="img" ', 1)
    for file, ending in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as scratch:
            if ending == ".svg":
                scratch.write_text(svg, encoding="utf-8")
            else:
                picture = vl_convert.svg_to_pdf(text) if ending == ".pdf" else vl_convert.svg_to_png(text, scale=2)
                scratch.write_bytes(picture)

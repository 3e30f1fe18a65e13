"""A figure as a Vega-Lite specification with its data, and the few parts that all figures are made of.

`layer` is a mark and its channels, `view` a coordinate system of layers, and `figure` a grid of views with one legend.
Rows of data name their view in `plot` and their line in `line`.
"""

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool

from rollcall.benchmark.config.errors import SettingError
from rollcall.leaderboard.names import COLOURS, DASHES, SHAPES, Style

Spec = dict[str, Any]

Row = dict[str, Any]
"""Of a long table."""

VERSION = "6.4"
"""Of Vega-Lite."""

WIDTH, HEIGHT = 240, 170
"""Of a view, in pixels."""

BLUE, VERMILION, GREY = COLOURS["blue"], COLOURS["vermilion"], "#666666"
WIDEST, NARROWEST = 2.8, 1.5
"""Widths of the first and the last line. Of two that overlap, the one below stays visible."""

CONFIG: Spec = {
    "axis": {
        "labelFontSize": 11,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "gridColor": "#e5e5e5",
        "labelFlush": False,
    },
    "legend": {"labelFontSize": 12, "labelLimit": 400, "title": None},
    "title": {"fontSize": 12, "fontWeight": "normal", "subtitleFontSize": 11, "subtitleColor": "#a03000"},
    "view": {"stroke": None},
    "text": {"fontSize": 11},
    "line": {"strokeWidth": 2},
}

LEGEND = {"symbolType": "stroke", "symbolSize": 400, "symbolOpacity": 1, "symbolStrokeWidth": 2}
"""Of lines."""

FORMATS = (".svg", ".pdf", ".png")


@dataclass(frozen=True)
class Figure:
    """A picture.

    Attributes:
        spec: its Vega-Lite specification, data inline.
        alt: what it shows, in words.
    """

    spec: Spec
    alt: str

    @cached_property
    def svg(self) -> str:
        """The figure as an <svg> element with real text, a title and a description."""
        import vl_convert  # starts a JavaScript engine

        still = deepcopy(self.spec)
        for one in still["concat"]:  # points that only show a tooltip
            one["layer"] = [part for part in one["layer"] if not part.get("name", "").startswith("hover")]
        text: str = vl_convert.vegalite_to_svg(still, vl_version=VERSION)
        # The clipping paths of all drawings of a process are numbered on; ours have the same names in every run.
        own, paths = sha256(json.dumps(still).encode()).hexdigest()[:6], dict[str, str]()
        text = re.sub(r"\bclip\d+", lambda found: paths.setdefault(found[0], f"clip-{own}-{len(paths)}"), text)
        title, *rest = re.split(r"(?<!Fig)\. ", self.alt, maxsplit=1)
        about = f"<title>{escape(title)}</title><desc>{escape(rest[0] if rest else title)}</desc>"
        return text.replace(">", f">{about}", 1).replace("<svg ", '<svg role="img" ', 1)

    def save(self, path: Path) -> None:
        """Write it into a file, whose folder is made; the ending of the file decides the format.

        Raises:
            SettingError: the ending is none of `FORMATS`.
        """
        import vl_convert

        form = path.suffix.lower()
        if form not in FORMATS:
            raise SettingError(f"plot: {str(path)!r} is not allowed; must end in {', '.join(FORMATS)}")
        convert: dict[str, Any] = {
            ".svg": lambda text: text.encode(),
            ".pdf": vl_convert.svg_to_pdf,
            ".png": lambda text: vl_convert.svg_to_png(text, scale=2),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(convert[form](self.svg))


def channel(
    field: str, title: str | None = None, *, kind: str = "quantitative", log: bool = False, **more: Any
) -> Spec:
    """A channel that shows a field. Options are those of its axis; `domain`, `nice` those of its scale."""
    scale: Spec = {"type": "log"} if log else {"zero": False}
    scale |= {key: more.pop(key) for key in ("domain", "nice") if key in more}
    low, high = scale.get("domain", (1, 1))
    axis = {"axis": {**({"format": "~e" if high > 1e4 * low else "~g", "tickCount": 6} if log else {}), **more}}
    return {"field": field, "type": kind, "title": title} | (
        {"scale": scale} | axis if kind == "quantitative" else axis
    )


def layer(
    mark: str, data: str = "long", *, plot: Any = None, only: Any = None, name: str = "", **channels: Any
) -> Spec:
    """A mark and its channels.

    Args:
        mark: such as `line`. Options of the mark are given as `mark_NAME`.
        data: the name of its rows.
        plot: only rows of this view.
        only: only rows with this expression of Vega.
        name: of the layer.
        channels: by name; a plain value stands for itself.
    """
    options = {key.removeprefix("mark_"): channels.pop(key) for key in list(channels) if key.startswith("mark_")}
    tests = [*([f"datum.plot === {json.dumps(plot)}"] if plot is not None else []), *([only] if only else [])]
    encoding = {key: one if isinstance(one, dict | list) else {"value": one} for key, one in channels.items()}
    made: Spec = {"mark": {"type": mark, **options}, "data": {"name": data}, "encoding": encoding}
    made |= {"transform": [{"filter": " && ".join(tests)}]} if tests else {}
    return made | ({"name": name} if name else {})


def view(layers: Sequence[Spec], title: str = "", stamp: str = "", width: int = WIDTH, height: Any = HEIGHT) -> Spec:
    """A coordinate system with layers; the first lies below. `stamp` warns below the title."""
    heading = {"text": textwrap.wrap(title, 44) or "", "subtitle": stamp}
    return {"width": width, "height": height, **({"title": heading} if title or stamp else {}), "layer": list(layers)}


def by_line(styles: Mapping[str, Style], *channels: str, legend: Spec = LEGEND) -> Spec:
    """Channels `color`, `strokeDash`, `shape` and `strokeWidth` by the field `line`, equal in all views of a figure.

    By default the legend shows lines, without their shapes.
    """
    last = max(1, len(styles) - 1)
    ranges: dict[str, list[Any]] = {
        "color": [one.colour for one in styles.values()],
        "strokeDash": [list(one.dash) for one in styles.values()],
        "shape": [one.shape for one in styles.values()],
        "strokeWidth": [WIDEST - (WIDEST - NARROWEST) * index / last for index in range(len(styles))],
    }

    def by(name: str) -> Spec:
        told = legend if len(styles) > 1 and not (name == "shape" and legend is LEGEND) else None
        scale = {"domain": list(styles), "range": ranges[name]}
        kind = "ordinal" if name == "strokeWidth" else "nominal"
        return {"field": "line", "type": kind, "legend": told, "scale": scale}

    return {name: by(name) for name in channels if name != "strokeWidth" or len(styles) > 1}


def shown(value: float) -> Spec:
    """The opacity of what belongs to a line: a click on the legend hides the other lines."""
    return {"condition": {"param": "shown", "value": value}, "value": 0.04}


def curve(
    styles: Mapping[str, Style], plot: int, x: Spec, y: Spec, tips: Sequence[Spec], step: bool = False
) -> list[Spec]:
    """The layers of lines over x: bands from `low` to `high`, lines through `value`, and points for a tooltip.

    Args:
        styles: of all lines of the figure.
        plot: number of the view.
        x, y: the axes; `y` is that of `value`. Rows with `few` are points, too.
        tips: channels of the tooltip.
        step: whether a value lasts until the next.
    """
    look: Spec = {"plot": plot, "x": x, "mark_clip": True}
    point: Spec = look | {"y": y, "mark_filled": True} | by_line(styles, "color", "shape")
    line = by_line(styles, "color", "strokeDash", "strokeWidth") | ({"mark_interpolate": "step-after"} if step else {})
    band: Spec = {"y": y | {"field": "low"}, "y2": {"field": "high"}, "opacity": shown(0.15)}
    return [
        layer("area", **look, **band, **by_line(styles, "color")),
        layer("line", **look, name=f"curve{plot}", y=y, opacity=shown(1), **line),
        layer("point", **point, only="datum.few", opacity=shown(1), mark_size=40),
        layer("point", **point, name=f"hover{plot}", opacity=0, tooltip=list(tips), mark_size=120),
    ]


def figure(
    views: Sequence[Spec],
    data: Mapping[str, Sequence[Mapping[str, Any]]],
    alt: str,
    columns: int = 3,
    caption: str = "",
) -> Figure:
    """A grid of views with one legend, and a caption below."""
    names = [part["name"] for one in views for part in one["layer"] if part.get("name", "").startswith("curve")]
    spec: Spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": alt,
        "background": "white",
        "config": CONFIG,
        "datasets": {name: [plain(row) for row in rows] for name, rows in data.items()},
        "columns": columns,
        "concat": list(views),
    }
    if names:
        toggled = {"type": "point", "fields": ["line"], "toggle": "true"}
        spec["params"] = [{"name": "shown", "select": toggled, "bind": "legend", "views": names}]
    if any("strokeDash" in part["encoding"] for one in views for part in one["layer"]):
        apart = {"legend": {"shape": "independent"}}  # else Vega-Lite adds the shapes to the legend of the lines
        spec |= {"resolve": apart, "concat": [one | {"resolve": apart} for one in views]}
    if caption:
        width = 40 * min(columns, len(views)) + 30
        text = textwrap.wrap(caption, width)
        spec["title"] = {
            "text": text,
            "anchor": "start",
            "orient": "bottom",
            "fontSize": 11,
            "offset": 12,
            "color": GREY,
        }
    return Figure(json.loads(json.dumps(spec, default=float)), alt)  # without numbers of numpy


def lines(
    rows: Sequence[Mapping[str, Any]],
    styles: Mapping[str, Style],
    x: Spec,
    y: Spec,
    alt: str = "",
    *,
    step: bool = False,
    points: Sequence[Mapping[str, Any]] = (),
    told: str = "",
) -> Figure:
    """A figure of lines in one view.

    Args:
        rows: of the lines.
        styles: of the lines.
        x, y: the axes.
        alt: what it shows, in words; by default the axes and the lines.
        step: whether a value lasts until the next.
        points: rows of measured points above the lines.
        told: the caption.
    """
    tips = [channel("line", "line", kind="nominal"), x, y]
    dots = layer("point", "points", x=x, y=y, color=VERMILION, mark_filled=True, mark_size=60, tooltip=[x, y])
    layers = [*curve(styles, 0, x, y, tips, step), *([dots] if points else [])]
    alt = alt or f"{y['title']} against {x['title']}. Lines: {'; '.join(styles)}."
    data = {"long": [{"plot": 0, **row} for row in rows]} | ({"points": points} if points else {})
    return figure([view(layers, width=480, height=260)], data, alt, caption=told)


def room(values: Iterable[float], log: bool = False, share: float = 0.03) -> list[float]:
    """The ends of an axis that shows these values, with some room."""
    shown = [one for one in values if np.isfinite(one) and (one > 0 or not log)]
    low, high = (min(shown), max(shown)) if shown else ((0.1, 1.0) if log else (0.0, 1.0))
    if log:
        return [low / (1 + 4 * share), high * (1 + 4 * share)]
    space = share * (high - low) if high > low else 0.1 * abs(high) or 1.0
    return [low - space, high + space]


def plain(row: Mapping[str, Any]) -> Spec:
    """A row as JSON has it: six digits, null for what is not finite."""

    def value(one: Any) -> Any:
        if isinstance(one, str) or one is None:
            return one
        number = float(f"{float(one):.6g}")
        return (int(number) if number.is_integer() and abs(number) < 1e15 else number) if np.isfinite(number) else None

    return {key: value(one) for key, one in row.items()}


def in_turn(count: int, without: Iterable[str] = ()) -> list[Style]:
    """Styles of lines that are no methods, without some colours."""
    colours = [colour for colour in COLOURS.values() if colour not in {*without}] or list(COLOURS.values())
    looks = [Style(c, dash, shape) for dash, shape in zip(DASHES.values(), SHAPES[2:], strict=False) for c in colours]
    return [looks[index % len(looks)] for index in range(count)]


def stretches(on: Bool[np.ndarray, "T"]) -> list[tuple[int, int]]:
    """First round, and the round after the last, of each stretch of rounds that is on."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], on, [False]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in list(pairwise(edges))[::2]]

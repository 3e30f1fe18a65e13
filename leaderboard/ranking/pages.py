"""A table as people read it: terminal, Markdown, CSV, and a plain HTML page."""

import csv
import io
import json
from pathlib import Path

import rich.box
from jinja2 import Environment, FileSystemLoader, select_autoescape
from rich.table import Table as Grid
from rich.text import Text

from leaderboard.paper import table as sheet
from leaderboard.ranking.table import Row, Table, Value


def header(table: Table) -> list[str]:
    """Column titles; a setting goes by the end of its name, as much of it as tells it from the others."""
    return ["method", *map(table.short, table.settings), *table.metrics, "seeds", "rounds"]


def terminal(table: Table, title: str) -> Grid:
    """A rich table, the best values bold and starred."""
    grid = Grid(
        title=title,
        title_justify="left",
        box=rich.box.SIMPLE_HEAD,
        caption=f"{caption(table)}; * best",
        caption_justify="left",
    )
    for name in header(table):
        grid.add_column(name, justify="right" if name in _numeric(table) else "left", overflow="fold")
    for row in table.rows:
        values = [
            Text(f"{value:±} *" if value.best else f"{value:±}  ", "bold green" * value.best)
            for value in row.values.values()
        ]
        grid.add_row(row.method, *_settings(table, row), *values, str(row.seeds), str(row.rounds))
    return grid


def caption(table: Table) -> str:
    """How the numbers came to be."""
    when = "at the last evaluation" if table.last_rounds == 1 else f"mean of the last {table.last_rounds} rounds"
    arrows = ", ".join(f"{metric} {'↑' if end == 'max' else '↓'}" for metric, end in table.metrics.items())
    return f"{arrows}; {when}; mean ± standard deviation over seeds"


def markdown(table: Table) -> str:
    """A GitHub table, the best values bold."""
    return sheet.markdown(_sheet(table, "**{}**", "bold: best"))


def latex(table: Table) -> str:
    """A `tabular`, the best values starred."""
    return sheet.latex(_sheet(table, "{} *", "* best"))


def _sheet(table: Table, best: str, legend: str) -> sheet.Sheet:
    """The table as text; `best` is what is written around a best value."""

    def shown(value: Value) -> str:
        return best.format(f"{value:±}") if value.best else f"{value:±}"

    rows = [
        [row.method, *_settings(table, row), *map(shown, row.values.values()), str(row.seeds), str(row.rounds)]
        for row in table.rows
    ]
    return sheet.Sheet(header(table), rows, 1 + len(table.settings), f"{caption(table)}; {legend}")


def comma_separated(table: Table) -> str:
    """All digits, mean and standard deviation in columns of their own."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    measured = [f"{metric} {part}" for metric in table.metrics for part in ("mean", "sd")]
    writer.writerow(["method", *table.settings, *measured, "seeds", "rounds"])
    for row in table.rows:
        numbers = [number for value in row.values.values() for number in (value.mean, value.sd)]
        writer.writerow([row.method, *_settings(table, row), *numbers, row.seeds, row.rounds])
    return text.getvalue()


def as_json(table: Table) -> str:
    """A list with an object for each row."""
    rows = [
        {
            "method": row.method,
            **row.settings,
            **{
                metric: {"mean": value.mean, "sd": None if value.sd != value.sd else value.sd}
                for metric, value in row.values.items()
            },
            "seeds": row.seeds,
            "rounds": row.rounds,
        }
        for row in table.rows
    ]
    return json.dumps(rows, indent=1)


def html(table: Table, title: str, about: str, picture: str) -> str:
    """A page that needs nothing beside it.

    Args:
        table: of the experiment.
        title, about: of the experiment.
        picture: SVG.
    """
    environment = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=select_autoescape())
    return environment.get_template("page.html").render(
        title=title, about=about, picture=picture, table=table, caption=caption(table)
    )


def _numeric(table: Table) -> tuple[str, ...]:
    return (*table.metrics, "seeds", "rounds")


def _settings(table: Table, row: Row) -> list[str]:
    return [row.settings.get(key, "") for key in table.settings]

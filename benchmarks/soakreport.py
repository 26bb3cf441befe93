"""
The figures of F{soak.py}: samples as CSV, the growth of memory, and a plot as SVG.

    python benchmarks/soakreport.py soak.csv [--plot soak.svg]

prints the summary of a CSV file that a run has written, and draws its plot.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

#: Minutes at the start that the growth of memory does not include: caches fill, and the watch windows grow.
WARM_UP = 10.0


class Sample(NamedTuple):
    """
    What was measured in one interval.

    @ivar seconds: Seconds since the start, at the end of the interval.
    @ivar requests: The number of responses.
    @ivar errors: The number of requests without a response of 2xx.
    @ivar codes: The errors by status or cause, as C{503:2 connection:1}.
    @ivar p50: Median of the latencies in ms, from the time at which a request was due.
    @ivar p99: Their 99th percentile.
    @ivar longest: The longest latency in ms.
    @ivar ping: The longest latency in ms of C{/livez/ping}, which the event loop of the server answers at once.
    @ivar client_lag: The longest delay in ms of a timer of the client itself.
    @ivar events: The number of events that all watches received.
    @ivar problems: Missing and reordered events, and expectations of the run that were not met.
    @ivar watches: The number of watch requests.
    @ivar rss: Resident memory of the server in MB.
    @ivar files: Open file descriptors of the server.
    @ivar threads: Threads of the server.
    @ivar cpu: CPU time of the server, in percent of one CPU.
    @ivar store: Size of the data directory in MB.
    """

    seconds: float
    requests: int
    errors: int
    codes: str
    p50: float
    p99: float
    longest: float
    ping: float
    client_lag: float
    events: int
    problems: int
    watches: int
    rss: float
    files: int
    threads: int
    cpu: float
    store: float


#: Types of the columns that are not numbers with a fraction.
_KINDS: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("requests", "errors", "events", "problems", "watches", "files", "threads"), int),
    "codes": str,
}


class Slope(NamedTuple):
    """
    A straight line through measurements.

    @ivar per_hour: The growth per hour.
    @ivar error: The standard error of the growth.
    """

    per_hour: float
    error: float


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values; 0 without values."""
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)] if ordered else 0.0


def slope(points: Sequence[tuple[float, float]]) -> Slope | None:
    """
    Fit a line by least squares.

    @param points: Pairs of seconds and a value.
    @return: The growth per hour; L{None} for fewer than three points, or if all are at the same time.
    """
    count = len(points)
    if count < 3:
        return None
    mean_x = math.fsum(x for x, _ in points) / count
    mean_y = math.fsum(y for _, y in points) / count
    spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
    if not spread:
        return None
    rate = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    rest = math.fsum((y - mean_y - rate * (x - mean_x)) ** 2 for x, y in points)
    return Slope(rate * 3600, math.sqrt(rest / (count - 2) / spread) * 3600)


def growth(samples: Sequence[Sample], column: str, warm_up: float = WARM_UP) -> Slope | None:
    """
    Return the growth per hour of a column after the warm-up.

    @param warm_up: Minutes at the start that are excluded.
    """
    return slope([(one.seconds, float(getattr(one, column))) for one in samples if one.seconds >= warm_up * 60])


def write_csv(path: Path, samples: Iterable[Sample]) -> None:
    """Write samples, with a head."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Sample._fields)
        writer.writerows(samples)


def read_csv(path: Path) -> list[Sample]:
    """
    Read the samples that L{write_csv} wrote.

    @raise ValueError: The file is not one of them.
    """
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    if not rows or tuple(rows[0]) != Sample._fields:
        raise ValueError(f"{path}: the first line is not {','.join(Sample._fields)}")
    kinds: list[Callable[[str], object]] = [_KINDS.get(column, float) for column in Sample._fields]
    samples = []
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(kinds):
            raise ValueError(f"{path}:{number}: {len(kinds)} columns are required")
        samples.append(Sample._make(kind(text) for kind, text in zip(kinds, row, strict=True)))
    return samples


def summary(samples: Sequence[Sample], warm_up: float = WARM_UP) -> list[str]:
    """Return the lines of the summary of a run."""
    if not samples:
        return ["no samples"]
    last = samples[-1]
    requests, errors = sum(one.requests for one in samples), sum(one.errors for one in samples)
    lines = [
        f"duration: {last.seconds / 60:.0f} min, {requests} requests ({requests / last.seconds:.0f}/s),"
        f" {errors} errors",
        f"watches: {sum(one.events for one in samples)} events, {sum(one.watches for one in samples)} requests,"
        f" {sum(one.problems for one in samples)} problems",
    ]
    for column, title in (("p50", "p50"), ("p99", "p99"), ("longest", "max"), ("ping", "/livez/ping max")):
        values = sorted(float(getattr(one, column)) for one in samples)
        lines.append(
            f"{title} of an interval: median {percentile(values, 0.5):.1f} ms,"
            f" p95 {percentile(values, 0.95):.1f} ms, max {values[-1]:.1f} ms"
        )
    for column, title, unit in (
        ("rss", "resident memory", "MB"),
        ("files", "open files", ""),
        ("threads", "threads", ""),
        ("store", "data directory", "MB"),
    ):
        values = [float(getattr(one, column)) for one in samples]
        line = f"{title}: {values[0]:.0f} {unit} first, {values[-1]:.0f} {unit} last, {max(values):.0f} {unit} max"
        found = growth(samples, column, warm_up)
        if found:
            line += f"; {found.per_hour:+.1f} {unit}/h (standard error {found.error:.1f}) after {warm_up:g} min"
        lines.append(" ".join(line.split()).replace(" ,", ",").replace(" /h", "/h"))
    lines.append(f"CPU time of the server: {sum(one.cpu for one in samples) / len(samples):.0f} % of one CPU")
    return lines


# --- the plot

_WIDTH, _PANEL, _LEFT, _RIGHT, _GAP = 900, 190, 64, 16, 46
_COLOURS = ("#1f6feb", "#bf5700", "#6e7781")
#: Title, unit, whether the axis is logarithmic, and the columns with their labels.
_PANELS = (
    (
        "Latency of requests, from the time at which they were due",
        "ms",
        True,
        (("p50", "p50"), ("p99", "p99"), ("longest", "max")),
    ),
    ("Resident memory of the server", "MB", False, (("rss", "resident memory"), ("store", "data directory"))),
    ("Open files and threads", "", False, (("files", "open files"), ("threads", "threads"))),
    ("Errors and problems of an interval", "", False, (("errors", "errors"), ("problems", "problems of watches"))),
)


def _ticks(top: float) -> list[float]:
    """Return about five round values from 0 to at least C{top}."""
    step = 10.0 ** math.floor(math.log10(max(top, 1e-9) / 4))
    for factor in (1, 2, 5, 10):
        if step * factor * 5 >= top:
            step *= factor
            break
    count = max(1, math.ceil(top / step))
    return [step * number for number in range(count + 1)]


def plot(samples: Sequence[Sample], title: str) -> str:
    """
    Draw a run as SVG: latencies, memory, open files and errors over time.

    @param title: The heading.
    @return: The SVG document.
    """
    height = 40 + len(_PANELS) * (_PANEL + _GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-family="sans-serif"'
        ' font-size="12" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15" fill="#1f2328">{escape(title)}</text>',
    ]
    until = max((one.seconds for one in samples), default=1.0) / 60
    for number, panel in enumerate(_PANELS):
        parts += _draw(samples, panel, 40 + number * (_PANEL + _GAP) + 18, until)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _draw(
    samples: Sequence[Sample],
    panel: tuple[str, str, bool, tuple[tuple[str, str], ...]],
    top: float,
    until: float,
) -> list[str]:
    """Draw one panel; C{until} is the end of the time axis in minutes."""
    title, unit, logarithmic, columns = panel
    values = [float(getattr(one, column)) for one in samples for column, _ in columns]
    width, height = _WIDTH - _LEFT - _RIGHT, _PANEL - 20
    if logarithmic:
        low = math.floor(math.log10(max(min((one for one in values if one > 0), default=1.0), 0.1)))
        high = max(math.ceil(math.log10(max(values, default=10.0) or 10.0)), low + 1)
        marks = [10.0**power for power in range(low, high + 1)]

        def place(value: float) -> float:
            return top + height * (1 - (math.log10(max(value, marks[0])) - low) / (high - low))

    else:
        marks = _ticks(max(values, default=1.0) or 1.0)

        def place(value: float) -> float:
            return top + height * (1 - value / marks[-1])

    parts = [f'<text x="{_LEFT}" y="{top - 6}" fill="#1f2328">{escape(title + (f" ({unit})" if unit else ""))}</text>']
    for mark in marks:
        y = place(mark)
        parts.append(f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_LEFT + width}" y2="{y:.1f}" stroke="#d0d7de"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end" fill="#59636e">{mark:g}</text>')
    for mark in _ticks(until):
        if mark <= until:
            x = _LEFT + width * mark / until
            parts.append(
                f'<text x="{x:.1f}" y="{top + height + 16}" text-anchor="middle" fill="#59636e">{mark:g} min</text>'
            )
    for (column, label), colour, number in zip(columns, _COLOURS, range(len(columns)), strict=False):
        points = " ".join(
            f"{_LEFT + width * one.seconds / 60 / until:.1f},{place(float(getattr(one, column))):.1f}"
            for one in samples
        )
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="1.3" points="{points}"/>')
        x = _LEFT + width - 130 * (len(columns) - number)
        parts.append(f'<text x="{x}" y="{top - 6}" fill="{colour}">{escape(label)}</text>')
    return parts


def main() -> int:
    """Print the summary of a file, and draw its plot."""
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path, help="a file that soak.py has written with --csv")
    parser.add_argument("--plot", type=Path, help="write the plot to this file, as SVG")
    parser.add_argument("--title", default="Soak test", help="heading of the plot")
    parser.add_argument("--warm-up", type=float, default=WARM_UP, help="minutes that growth does not include")
    options = parser.parse_args()
    try:
        samples = read_csv(options.csv)
    except (OSError, ValueError) as error:
        sys.exit(f"soakreport: {error}")
    print(*summary(samples, options.warm_up), sep="\n")
    if options.plot:
        options.plot.write_text(plot(samples, options.title))
    return 0


if __name__ == "__main__":
    sys.exit(main())

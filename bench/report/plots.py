"""Plots as SVG: horizontal bars, and lines. Colours come from the style sheet below, which has a
light and a dark scheme."""
import html
import math

STYLE = """
.plot{--ink:#1d2433;--quiet:#5d6778;--grid:#dfe3ea;--weir:#0a7d5a;--weir2:#5bb698;--free:#3f6fb5;\
--lock:#b08968;--floor:#98a1b0;--rest:#c3c9d4;
--c1:#c8443a;--c2:#7048c0;--c3:#c07d00;--c4:#0a8fae;--c5:#b0467f;--c6:#6b7440;--c7:#4f5b70}
@media(prefers-color-scheme:dark){.plot{--ink:#e7eaf0;--quiet:#a3adbd;--grid:#313846;\
--weir:#35c692;--weir2:#1f8163;--free:#6f9be0;--lock:#c29b78;
--floor:#7d8797;--rest:#4d5564;--c1:#ef7d72;--c2:#b195f0;--c3:#dfa645;--c4:#4dbfd3;--c5:#e08abb;\
--c6:#a9b36c;--c7:#a7b2c4}}
.plot text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;\
fill:var(--ink)}
.plot .t{font-size:13.5px;font-weight:600}.plot .q{fill:var(--quiet);font-size:11.5px}\
.plot .w{font-weight:700}
.plot .g{stroke:var(--grid);stroke-width:1}.plot .a{stroke:var(--quiet);stroke-width:1}
.plot .e{stroke:var(--ink);stroke-width:1.2;opacity:.65}\
.plot polyline{fill:none;stroke-linejoin:round;stroke-linecap:round}
"""
COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7"]
# If the largest value is this many times the smallest, bars would hide the small ones.
LOG_FROM = 40


def escape(text):
    return html.escape(str(text), quote=True)


def text(x, y, words, classes="", anchor="start", extra=""):
    kind = f' class="{classes}"' if classes else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}"{kind} text-anchor="{anchor}"{extra}>{escape(words)}'
            '</text>')


def line(x1, y1, x2, y2, classes):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{classes}"/>'


def svg(width, height, parts, label, alone=False):
    style = f"<style>{STYLE}</style>" if alone else ""
    return ('<svg xmlns="http://www.w3.org/2000/svg" class="plot" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}">'
            f'{style}{"".join(parts)}</svg>')


def short(value):
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:g}{letter}"
    return f"{value:g}"


def time_label(ns):
    for limit, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= limit:
            return f"{ns / limit:g} {unit}"
    return f"{ns:g} ns"


class Linear:
    logarithmic = False

    def __init__(self, top, start, end):
        self.top, self.start, self.end = top or 1, start, end
        raw = self.top / 5
        unit = 10 ** math.floor(math.log10(raw))
        self.step = next(unit * m for m in (1, 2, 2.5, 5, 10) if unit * m >= raw)

    def at(self, value):
        return self.start + (self.end - self.start) * min(value, self.top) / self.top

    def ticks(self):
        count = int(self.top / self.step + 1e-9)
        return [round(i * self.step, 10) for i in range(count + 1)]


class Log:
    logarithmic = True

    def __init__(self, bottom, top, start, end):
        self.low, self.high = math.floor(math.log10(bottom)), math.ceil(math.log10(top))
        if self.low == self.high:
            self.high += 1
        self.start, self.end = start, end

    def at(self, value):
        share = (math.log10(max(value, 10.0 ** self.low)) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * share

    def ticks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


# ---- bars ----

ROW, LABELS, VALUES, WIDTH = 19, 256, 62, 590


def scale_for(rows, may_be_log):
    values = [row["median"] for row in rows if row["median"] > 0]
    start, end = LABELS, WIDTH - VALUES
    if may_be_log and values and max(values) > LOG_FROM * min(values):
        return Log(min(min(values), *(row["low"] for row in rows if row["low"] > 0)),
                   max(row["high"] for row in rows), start, end)
    return Linear(max([row["high"] for row in rows] + values + [0]) * 1.02, start, end)


def bar(row, y, scale, show):
    """Draws a bar from zero, or a dot on a logarithmic axis, which has no zero."""
    middle, centre = scale.at(row["median"]), y + ROW / 2
    fill = f'style="fill:var(--{row["kind"]})"'
    bold = "w" if row["kind"].startswith("weir") else ""
    parts = [text(LABELS - 8, centre + 4, row["name"], bold, "end")]
    if scale.logarithmic:
        parts.append(line(LABELS, centre, middle, centre, "g"))
        parts.append(f'<circle cx="{middle:.1f}" cy="{centre:.1f}" r="5" {fill}/>')
    else:
        parts.append(f'<rect x="{LABELS}" y="{y + 3:.1f}" width="{max(middle - LABELS, 1):.1f}" '
                     f'height="{ROW - 6}" rx="2" {fill}/>')
    parts.append(line(scale.at(row["low"]), centre, scale.at(row["high"]), centre, "e"))
    parts.append(text(max(middle, scale.at(row["high"])) + 7, centre + 4, show(row["median"]), "q"))
    return parts


def bars(title, note, axis, rows, show=short, may_be_log=False):
    """rows: name, median, low, high, kind. The best row comes first."""
    top, height = 46, 46 + ROW * len(rows) + 40
    scale = scale_for(rows, may_be_log)
    bottom = top + ROW * len(rows)
    parts = [text(0, 16, title, "t"), text(0, 33, note, "q")]
    for tick in scale.ticks():
        x = scale.at(tick)
        parts += [line(x, top, x, bottom, "g"), text(x, bottom + 15, short(tick), "q", "middle")]
    for index, row in enumerate(rows):
        parts += bar(row, top + ROW * index, scale, show)
    parts += [line(LABELS, top, LABELS, bottom, "a"),
              text((LABELS + WIDTH - VALUES) / 2, bottom + 33,
                   axis + (", logarithmic" if scale.logarithmic else ""), "q", "middle")]
    return svg(WIDTH, height, parts, title)


def stacked(panels, columns, label):
    """Puts several plots into one picture, for the README."""
    sizes = []
    for panel in panels:
        box = panel.split('viewBox="0 0 ', 1)[1].split('"', 1)[0].split()
        sizes.append((float(box[0]), float(box[1])))
    rows = [range(first, min(first + columns, len(panels)))
            for first in range(0, len(panels), columns)]
    y, parts, gap = 8.0, [], 28
    for row in rows:
        for place, index in enumerate(row):
            x = 8 + place * (WIDTH + gap)
            width, height = sizes[index]
            place = f'x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}"'
            parts.append(panels[index].replace("<svg ", f"<svg {place} ", 1))
        y += max(sizes[index][1] for index in row) + 10
    return svg(columns * WIDTH + (columns - 1) * gap + 16, y, parts, label, alone=True)


# ---- lines ----

PLOT_WIDTH, PLOT_HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 820, 380, 74, 272, 46, 52


def spread_labels(labels, gap=14):
    """Moves labels apart, from top to bottom; each is (y, name, style)."""
    placed = []
    for y, name, style in sorted(labels):
        placed.append([max(y, placed[-1][0] + gap) if placed else y, name, style])
    limit = PLOT_HEIGHT - BOTTOM + 6
    for label in reversed(placed):
        label[0] = min(label[0], limit)
        limit = label[0] - gap
    return placed


def colour_of(series, used):
    if series["kind"] == "weir":
        variable = "--weir" if "--weir" not in used else "--weir2"
    else:
        variable = next((colour for colour in COLOURS if colour not in used), "--rest")
    used.append(variable)
    return variable


def axes(y, x_axis, y_axis, x_labels, y_label):
    parts = []
    bottom, right = PLOT_HEIGHT - BOTTOM, PLOT_WIDTH - RIGHT
    for tick in y.ticks():
        parts += [line(LEFT, y.at(tick), right, y.at(tick), "g"),
                  text(LEFT - 8, y.at(tick) + 4, y_label(tick), "q", "end")]
    for position, words in x_labels:
        parts += [line(position, TOP, position, bottom, "g"),
                  text(position, bottom + 17, words, "q", "middle")]
    middle = (TOP + bottom) / 2
    parts += [line(LEFT, bottom, right, bottom, "a"),
              text((LEFT + right) / 2, bottom + 38, x_axis, "q", "middle"),
              text(16, middle, y_axis, "q", "middle", f' transform="rotate(-90 16 {middle:.0f})"')]
    return parts


def lines(title, note, x_axis, y_axis, series, x_ticks, y_label=short, logarithmic=False,
          dots=True):
    """
    series: name, kind, points (x from 0 to 1, y), and whether it is drawn in grey and without a
    name. x_ticks: pairs of a place from 0 to 1 and its label.
    """
    values = [value for one in series for _, value in one["points"] if value > 0]
    if not values:
        return ""
    bottom, right = PLOT_HEIGHT - BOTTOM, PLOT_WIDTH - RIGHT

    def across(share):
        return LEFT + (right - LEFT) * share

    y = (Log(min(values), max(values), bottom, TOP) if logarithmic
         else Linear(max(values) * 1.05, bottom, TOP))
    parts = [text(0, 16, title, "t"), text(0, 33, note, "q")]
    parts += axes(y, x_axis, y_axis + (", logarithmic" if logarithmic else ""),
                  [(across(at), words) for at, words in x_ticks], y_label)
    labels, used = [], []
    for one in series:
        one["colour"] = "--rest" if one.get("grey") else colour_of(one, used)
    for one in sorted(series, key=lambda one: (not one.get("grey"), one["kind"] == "weir")):
        points = [(across(at), y.at(value)) for at, value in one["points"]]
        width = 3 if one["kind"] == "weir" else 1 if one.get("grey") else 1.8
        parts.append(f'<polyline style="stroke:var({one["colour"]})" stroke-width="{width}" '
                     'points="'
                     + " ".join(f"{px:.1f},{py:.1f}" for px, py in points) + '"/>')
        if dots and not one.get("grey"):
            parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" '
                      f'style="fill:var({one["colour"]})"/>' for px, py in points]
        if not one.get("grey"):
            labels.append((points[-1][1], one["name"], one["colour"]))
    for at, name, colour in spread_labels(labels):
        bold = "w" if colour.startswith("--weir") else ""
        parts.append(f'<circle cx="{right + 14}" cy="{at:.1f}" r="4" style="fill:var({colour})"/>'
                     + text(right + 23, at + 4, name, bold))
    return svg(PLOT_WIDTH, PLOT_HEIGHT, parts, title)

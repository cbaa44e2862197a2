# SPDX-License-Identifier: Apache-2.0
"""Bars as an SVG file, in the style of `waste bench --svg`: the median before the band of its
limit, repeats as dots, one axis a group that begins at 0.
"""

import dataclasses
import math
from xml.sax.saxutils import escape

LEFT, PLOT, WIDTH, ROW = 250, 340, 850, 22
STYLE = """<style>
svg { font: 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; background: #fff }
text { fill: #1f2328 } .title { font-size: 18px; font-weight: 600 }
.heading { font-size: 13px; font-weight: 600 } .muted { fill: #59636e }
.right { text-anchor: end } .middle { text-anchor: middle }
.page { fill: #fff } .grid { stroke: #d9dee3 } .band { fill: #dbe5f2 } .bar { fill: #2f6fd0 }
.dot { fill: #fff; stroke: #0b2e66 }
@media (prefers-color-scheme: dark) {
svg { background: #10151b } text { fill: #e6edf3 } .muted { fill: #9aa5b1 }
.page { fill: #10151b } .grid { stroke: #2d3640 } .band { fill: #26384f } .bar { fill: #4f96f0 }
.dot { fill: #10151b; stroke: #d6e9ff }
}
</style>
"""


@dataclasses.dataclass
class Bar:
    label: str
    value: float
    note: str
    limit: float = 0  # 0: none
    points: tuple = ()


def tick_step(most):
    """The distance of about four marks from 0 to `most`: 1, 2 or 5 and zeros."""
    power = 10 ** math.floor(math.log10(most / 4))
    return next(factor * power for factor in (1, 2, 5, 10) if most / 4 <= factor * power * 1.000001)


class BarChart:
    def __init__(self, title, subtitles):
        self.body = []
        self.y = 38
        self._text(24, "title", title)
        for line in subtitles:
            self.y += 19
            self._text(24, "muted", line)

    def _text(self, x, style, text, lower=0):
        self.body.append(f'<text class="{style}" x="{x:.1f}" y="{self.y + lower:.1f}">'
                         f"{escape(text)}</text>")

    def _bar(self, style, width):
        self.body.append(f'<rect class="{style}" x="{LEFT}" y="{self.y + 4:.1f}" '
                         f'width="{width:.1f}" height="{ROW - 8}"/>')

    def add(self, heading, bars, percent=False):
        """A group; values of `percent` are shares."""
        self.y += 34
        self._text(24, "heading", heading)
        self.y += 10
        most = max([1e-9] + [max((bar.value, bar.limit) + tuple(bar.points)) for bar in bars])
        step = tick_step(most)
        most = math.ceil(most / step - 1e-9) * step
        for tick in range(round(most / step) + 1):
            x = LEFT + PLOT * tick * step / most
            self.body.append(f'<path class="grid" d="M{x:.1f} {self.y}v{len(bars) * ROW + 4}"/>')
            mark = f"{tick * step:.0%}" if percent else f"{tick * step:g}"
            self._text(x, "muted middle", mark, len(bars) * ROW + 17)
        for bar in bars:
            self._draw(bar, PLOT / most)
        self.y += 18

    def _draw(self, bar, scale):
        self._text(LEFT - 10, "right", bar.label, ROW / 2 + 4)
        self._bar("band", bar.limit * scale)
        self._bar("bar", bar.value * scale)
        for point in bar.points:
            self.body.append(f'<circle class="dot" cx="{LEFT + point * scale:.1f}" '
                             f'cy="{self.y + ROW / 2}" r="3"/>')
        self._text(LEFT + PLOT + 18, "note", bar.note, ROW / 2 + 4)
        self.y += ROW

    def text(self):
        size = f'width="{WIDTH}" height="{self.y + 24}"'
        return (f'<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" '
                f'{size} viewBox="0 0 {WIDTH} {self.y + 24}" role="img">\n{STYLE}'
                '<rect class="page" width="100%" height="100%"/>\n' + "\n".join(self.body) +
                "\n</svg>\n")

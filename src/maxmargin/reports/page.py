"""The HTML around the sections: one file, no scripts, nothing from elsewhere; for 320 pixels and more, dark and light."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; --paper: #fdfcfa; --card: #f4f1ec; --ink: #22313f; --soft: #5f6c77; --line: #d9d4cb;
  --c0: 40 102 110; --c1: 200 85 61; --c2: 160 115 25; --c3: 106 93 148; --c4: 70 125 70; --c5: 120 90 70;
  --good: #1f7a4d; --bad: #a8401f; --neutral: #5f6c77; }
@media (prefers-color-scheme: dark) { :root { --paper: #14191e; --card: #1e252c; --ink: #e6e9ec; --soft: #9aa7b2;
  --line: #37424c; --c0: 102 187 196; --c1: 240 138 113; --c2: 224 180 95; --c3: 170 156 214; --c4: 128 190 126;
  --c5: 190 158 136; --good: #63c794; --bad: #f2916f; --neutral: #9aa7b2; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1.2rem 1rem 3rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .3rem; } h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; }
h3 { font-size: .95rem; margin: 0 0 .4rem; } p { margin: .4rem 0; } .soft { color: var(--soft); }
.badge { font-weight: 600; } .good { color: var(--good); } .bad { color: var(--bad); } .neutral { color: var(--neutral); }
.cards { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); margin: 1rem 0; }
.card { background: var(--card); border-radius: .5rem; padding: .6rem .8rem; }
.card b { display: block; font-size: 1.15rem; font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); font-size: .85rem; }
.charts { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); }
.chart { background: var(--card); border-radius: .5rem; padding: .8rem; min-width: 0; }
.wide { overflow-x: auto; } pre { background: var(--card); border-radius: .5rem; padding: .8rem; overflow-x: auto;
  font-size: .85rem; }
table { border-collapse: collapse; font-size: .9rem; } td, th { padding: .2rem .7rem .2rem 0; text-align: left;
  vertical-align: top; } th { font-weight: 600; } .rule td, .rule th { border-top: 1px solid var(--line); }
.number { text-align: right; font-variant-numeric: tabular-nums; }
.matrix td, .matrix th { padding: .3rem .6rem; text-align: right; } .matrix td { background: rgb(var(--c0) / var(--p)); }
.matrix td.wrong { background: rgb(var(--c1) / var(--p)); }
.row { display: grid; grid-template-columns: minmax(4.5rem, 9rem) 1fr; gap: .6rem; align-items: center; font-size: .9rem;
  margin: .15rem 0; } .track { display: flex; align-items: center; gap: .4rem; min-width: 0; }
.fill { background: rgb(var(--c0)); height: .8rem; border-radius: .2rem; min-width: 1px; flex: none; }
svg { width: 100%; max-width: 36rem; height: auto; display: block; }
svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.grid { stroke: var(--line); stroke-width: 1; } .zero { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
.curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; } .dashed { stroke-dasharray: 5 4; }
.bar { fill-opacity: .6; } .dot { stroke: none; fill-opacity: .75; }
""" + "".join(
    f".curve.c{k} {{ stroke: rgb(var(--c{k})); }} .dot.c{k}, .bar.c{k} {{ fill: rgb(var(--c{k})); }} "
    f".key.c{k} {{ color: rgb(var(--c{k})); font-weight: 600; }}\n"
    for k in range(6)
)


def document(title: str, parts: Iterable[str]) -> str:
    """The whole page. The policy forbids scripts and everything from the network, whatever the sections say."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n<h1>{escape(title)}</h1>\n"
        + "\n".join(parts)
        + "\n</body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n" + "\n".join(part for part in parts if part) + "</section>"


def text(words: str, style: str = "") -> str:
    return f"<p{f' class={chr(34)}{style}{chr(34)}' if style else ''}>{escape(words)}</p>"


def cards(values: Sequence[tuple[str, str]]) -> str:
    """Key figures: (value, what it is)."""
    inner = "".join(f'<div class="card"><b>{escape(value)}</b><span>{escape(name)}</span></div>' for value, name in values)
    return f'<div class="cards">{inner}</div>'


def charts(*pairs: tuple[str, str]) -> str:
    """Charts with a heading each, side by side where there is room."""
    inner = "".join(f'<div class="chart"><h3>{escape(title)}</h3>{body}</div>' for title, body in pairs if body)
    return f'<div class="charts">{inner}</div>' if inner else ""


def bars(values: dict[str, float], spelled: Any = "{:.3g}".format) -> str:
    """Names, bars and numbers, as text that wraps."""
    most = max([value for value in values.values() if value > 0], default=1.0)
    return "".join(
        f'<div class="row"><span>{escape(name)}</span><span class="track">'
        f'<span class="fill" style="width:{70 * max(value, 0) / most:.2f}%"></span>'
        f'<span class="number">{escape(spelled(value))}</span></span></div>'
        for name, value in values.items()
    )


def table(rows: Iterable[Sequence[Any]], head: Sequence[str] = ()) -> str:
    """Cells as text; numbers to the right."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        '<tr class="rule">' + "".join(_cell(cell) for cell in row) + "</tr>" for row in rows
    )  # fmt: skip
    return f'<div class="wide"><table>{f"<tr>{top}</tr>" if top else ""}{body}</table></div>'


def _cell(value: Any) -> str:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f'<td class="number">{value:,}</td>' if isinstance(value, int) else f'<td class="number">{value:.4g}</td>'
    return f"<td>{escape(str(value))}</td>"


def matrix(counts: Any, names: Sequence[str]) -> str:
    """A confusion matrix; the stronger a colour, the larger the part of the row."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    lines = [f'<tr><th scope="col">true \\ predicted</th>{head}</tr>']
    for i, row in enumerate(counts.tolist()):
        total = max(1, sum(row))
        cells = "".join(
            f'<td class="{"right" if i == j else "wrong"}" style="--p:{0.75 * count / total:.3f}">{count:,}</td>'
            for j, count in enumerate(row)
        )
        lines.append(f"<tr><th>{escape(names[i])}</th>{cells}</tr>")
    return f'<div class="wide"><table class="matrix">{"".join(lines)}</table></div>'

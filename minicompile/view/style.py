"""How drawings look: the palette, and the few HTML-like tables that every drawing is made of.

Graphviz measures text with the metrics of Courier, 0.6 em for every character, so boxes fit in every
monospaced font.  All text from models passes through `escape`, and every colour has one name here: a
page can exchange each hex for its dark twin.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from itertools import pairwise

PALETTE: dict[str, str] = {
    # paper and ink
    "paper": "#fffefb",
    "panel": "#f4f0e7",
    "ink": "#1f1e1b",
    "muted": "#6b675e",
    "rule": "#d9d3c7",
    "edge": "#8c877b",
    "strip": "#ffffff",  # the letter on a kind's strip
    "apart": "#a33a0d",  # kept apart by fusion
    # kinds of operation
    "E": "#2f6690",  # elementwise; vector loops
    "R": "#b4491a",  # reduction
    "M": "#1d7455",  # contraction (matrix product)
    "G": "#94487a",  # gather, scatter; parallel loops
    "S": "#8a6a00",  # scan; thread loops
    "C": "#776d4c",  # creation
    "L": "#6e6c66",  # layout; unrolled loops
    "X": "#26262b",  # Extern
    "f": "#4b4a66",  # an ATen call that has a decomposition
    # memories
    "register": "#efe3ec",
    "local": "#e8e5dc",
    "shared": "#fae8d4",
    "arena": "#e2ebf2",
    # differences: line, and the ground it stands on
    "removed": "#b3261e",
    "removed ground": "#fbe9e7",
    "added": "#1a7f37",
    "added ground": "#e6f4e9",
    "changed": "#8a5d00",
    "changed ground": "#fff3d1",
}

KIND_WORDS: dict[str, str] = {
    "E": "elementwise",
    "R": "reduction",
    "M": "contraction",
    "G": "gather",
    "T": "scatter",
    "S": "scan",
    "C": "creation",
    "L": "layout",
    "X": "extern: PyTorch itself",
    "f": "ATen call",
}
PALETTE["T"] = PALETTE["G"]

SMALL, NORMAL, LARGE = 8.5, 10.0, 11.0  # points: types and captions, names, kernel titles
_OPEN_LINE = '<FONT POINT-SIZE="11">&#160;</FONT>'  # a wide space: it opens the line spacing


def escape(text: str) -> str:
    """Any text as the content of an HTML-like label: ASCII only, since widths count bytes."""
    safe = html.escape(text, quote=True).replace("[", "&#91;").replace("]", "&#93;")
    safe = safe.encode("ascii", "replace").decode()
    return re.sub(r"[\x00-\x1f\x7f]", "?", safe)


def identifier(prefix: str, name: str) -> str:
    """``n_t3_1``: a stable id of letters, digits and underscores."""
    return f"{prefix}_{re.sub(r'[^A-Za-z0-9_]', '_', name)}"


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3].rstrip() + "..."


def words(
    text: str, color: str = "", size: float = 0, bold: bool = False, italic: bool = False
) -> str:
    """A run of text. Empty text gives nothing, since an empty FONT is a syntax error."""
    if not text:
        return ""
    out = escape(text)
    out = f"<B>{out}</B>" if bold else out
    out = f"<I>{out}</I>" if italic else out
    attributes = f' COLOR="{PALETTE[color]}"' if color else ""
    attributes += f' POINT-SIZE="{size:g}"' if size else ""
    return f"<FONT{attributes}>{out}</FONT>" if attributes else out


def caption(text: str, color: str = "muted", italic: bool = False) -> str:
    return words(text, color, SMALL, italic=italic)


def lines(*parts: str) -> str:
    """Ready-made lines, left aligned; all but the first stand on open spacing."""
    first, *rest = [p for p in parts if p]
    left = '<BR ALIGN="LEFT"/>'
    return first + left + "".join(line + _OPEN_LINE + left for line in rest)


@dataclass(frozen=True)
class Frame:
    """Outline and ground of a box; `mark` replaces the kind's letter in differences."""

    line: str = "edge"
    ground: str = "paper"
    mark: str = ""
    dashed: bool = False


PLAIN = Frame()
KERNEL = Frame(line="ink")
REMOVED = Frame("removed", "removed ground", "-", dashed=True)
ADDED = Frame("added", "added ground", "+")
CHANGED = Frame("changed", "changed ground", "~")


def box(letter: str, text: str, frame: Frame = PLAIN) -> str:
    """A box with a strip at its left that holds the letter of its kind, on the kind's colour."""
    strip = PALETTE[frame.line if frame.mark else letter]
    style = ' STYLE="DASHED"' if frame.dashed else ""
    return (
        f'<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2" '
        f'COLOR="{PALETTE[frame.line]}" BGCOLOR="{PALETTE[frame.ground]}"{style}><TR>'
        f'<TD BGCOLOR="{strip}" CELLPADDING="2" WIDTH="13">'
        f"{words(frame.mark or letter, 'strip', SMALL, bold=True)}</TD>"
        f'<TD ALIGN="LEFT" BALIGN="LEFT" CELLPADDING="4">{text}</TD></TR></TABLE>'
    )


def plain_text(text: str, frame: Frame = PLAIN) -> str:
    """A word without a box: layouts, which cost nothing by themselves."""
    ground = PALETTE[frame.ground]
    line = PALETTE[frame.line] if frame.mark else ground
    shown = caption(f"{frame.mark or ' '} {text}", italic=True)
    style = ' STYLE="DASHED"' if frame.dashed else ""
    return (
        f'<TABLE BORDER="1" CELLBORDER="0" CELLSPACING="0" CELLPADDING="1" COLOR="{line}" '
        f'BGCOLOR="{ground}"{style}><TR><TD>{shown}'
        f"</TD></TR></TABLE>"
    )


def port(name: str, detail: str, side: str) -> str:
    """An input (a rule below: side "B") or a return (a rule above: side "T")."""
    return (
        f'<TABLE BORDER="1" SIDES="{side}" CELLBORDER="0" CELLSPACING="0" CELLPADDING="2" '
        f'COLOR="{PALETTE["ink"]}"><TR><TD>{words(name, bold=True)}{caption(": " + detail)}'
        f"</TD></TR></TABLE>"
    )


def node(name: str, label: str, class_: str = "", invisible: bool = False) -> str:
    attributes = f' class="{class_}"' if class_ else ""
    attributes += " style=invis" if invisible else ""
    return f'{name} [id="{name}"{attributes} label=<{label}>]'


def edge(start: str, end: str, *attributes: str) -> str:
    """``n_a -> n_b [id="e_a_b" ...]``; attributes are ready-made DOT, empty ones are left out."""
    name = f"e_{start.partition('_')[2]}_{end.partition('_')[2]}"
    given = " ".join((f'id="{name}"', *filter(None, attributes)))
    return f"{start} -> {end} [{given}]"


def color(role: str) -> str:
    return f'color="{PALETTE[role]}"'


def drawing(body: list[str], *settings: str) -> str:
    """The whole DOT text around the body's lines. `settings` are graph attributes, ready-made."""
    muted = PALETTE["muted"]
    head = [
        "digraph {",
        f'  graph [rankdir=TB bgcolor="transparent" fontname="Courier" fontsize=10 '
        f'fontcolor="{muted}" nodesep=0.22 ranksep=0.26 newrank=true ordering=out pad=0.12 '
        f'{" ".join(("", *settings)).strip()} id="pic"]',
        f'  node  [shape=plain fontname="Courier" fontsize=10 fontcolor="{PALETTE["ink"]}"]',
        f'  edge  [color="{PALETTE["edge"]}" arrowsize=0.5 penwidth=0.9 fontname="Courier" '
        f'fontsize=8.5 fontcolor="{muted}"]',
    ]
    return "\n".join([*head, *("  " + line for line in body), "}"]) + "\n"


def notice(text: str) -> str:
    """A drawing that only says something, for what is too large or cannot be drawn."""
    return drawing([node("n_notice", plain_text(text))])


def legend() -> str:
    """A drawing of every kind of box and mark with its meaning."""
    body = []
    for letter, meaning in KIND_WORDS.items():
        body.append(node(identifier("n", letter), box(letter, lines(words(meaning, bold=True)))))
    for frame, meaning in ((REMOVED, "removed"), (ADDED, "added"), (CHANGED, "changed")):
        body.append(
            node(f"n_{meaning}", box("E", lines(words(meaning, bold=True)), frame)),
        )
    names = [line.split(" ", 1)[0] for line in body]
    columns = [names[i : i + 4] for i in range(0, len(names), 4)]
    body += [f"{a} -> {b} [style=invis]" for column in columns for a, b in pairwise(column)]
    return drawing(body)

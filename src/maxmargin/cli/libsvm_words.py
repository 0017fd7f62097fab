"""LIBSVM's spelling as argparse understands it.

    -w-1 5      a class's weight: the label is part of the option   --weight=-1:5
    -h 0        shrinking; -h alone is help everywhere else         --shrinking=0
    -r -1e-3    a negative number that argparse takes for options   -r-1e-3
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def translated(words: Sequence[str]) -> list[str]:
    """The words of a command line, in the same order."""
    out: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        after = rest[0] if rest else None
        if word == "--":
            return [*out, word, *rest]
        if word.startswith("-w") and len(word) > 2 and after is not None:
            out.append(f"--weight={word[2:]}:{rest.pop(0)}")
        elif word == "-h":
            out.append(f"--shrinking={rest.pop(0)}" if after in ("0", "1") else "--help")
        elif len(word) == 2 and word[0] == "-" and word[1].isalpha() and after and after[0] == "-" and _number(after):
            out.append(word + rest.pop(0))
        else:
            out.append(word)
    return out


def _number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False

"""Texts of samples as readers by regular expressions take them: what those of each format share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PIECE = 1 << 16  # bytes that a thread reads at a time
NUMBER = re.compile(rb"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE)
BLANKS = b" \t\r\v\f"


def as_bytes(text: bytes) -> Any:
    return np.frombuffer(text, np.uint8)


@dataclass
class Found:
    """What a text holds, or where and how it is wrong."""

    labels: list[Any] = field(default_factory=list)
    rows: list[dict[int, Any]] = field(default_factory=list)
    queries: list[int] = field(default_factory=list)
    lines: int = 0
    fault: tuple[int, int] = (-1, 0)

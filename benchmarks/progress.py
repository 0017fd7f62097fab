"""What a run has measured so far, on disk after every fit, so that a run that was killed goes on where it was."""

from __future__ import annotations

import json
import os
import pathlib
import threading
from typing import Any

# A fit counts for a run only if it was made under the same conditions.
ALIKE = ("experiment", "hardware", "versions", "code", "threads", "time_limit", "quick")


class Progress:
    """Records by the identity of their cell, in the file `path` (None: in memory only)."""

    def __init__(self, path: pathlib.Path | None = None) -> None:
        self.path = path
        self.records: dict[str, dict[str, Any]] = {}
        self._used: set[str] = set()
        self._lock = threading.Lock()

    def open(self, header: dict[str, Any], fresh: bool = False) -> None:
        """Take up what the file holds; refuse when it was measured under other conditions, unless `fresh`."""
        self.header = header
        if self.path is None or fresh or not self.path.exists():
            return
        old = json.loads(self.path.read_text())
        other = [name for name in ALIKE if old["header"].get(name) != header[name]]
        if other:
            raise SystemExit(
                f"results/{self.path.name} holds {len(old['records'])} cells measured under other conditions "
                f"({', '.join(other)}): finish that run as it was begun, or throw them away with --fresh"
            )
        self.records = old["records"]

    def find(self, identity: str) -> dict[str, Any] | None:
        self._used.add(identity)
        return self.records.get(identity)

    def keep(self, identity: str, record: dict[str, Any]) -> None:
        with self._lock:
            self.records[identity] = record
            self._write()

    def close(self) -> None:
        """The run is written elsewhere: drop its cells; those of other data sets wait for their own run."""
        self.records = {name: record for name, record in self.records.items() if name not in self._used}
        if self.records:
            self._write()
        elif self.path is not None:
            self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self.path is None:
            return
        self.path.parent.mkdir(exist_ok=True)
        other = self.path.with_suffix(".tmp")
        other.write_text(json.dumps({"header": self.header, "records": self.records}))
        os.replace(other, self.path)

"""Which code a result was measured with: the revision, whether the tree and the build agree with it, and what is amiss.

A result counts only when each of its records names a revision of this repository's history from which anybody can build
the same program. So `run` refuses to write results from a changed tree or a stale build (drafts may come from anywhere
and say so), and a test asks `faults` about everything that is stored.
"""

from __future__ import annotations

import filecmp
import functools
import importlib.util
import pathlib
import subprocess
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What decides a measurement. Stored results and the docs made of them change between the runs of one sitting.
MEASURED = ("src", "native", "benchmarks", "CMakeLists.txt", "pyproject.toml", ":!benchmarks/results", ":!benchmarks/*.md")


def commit(root: pathlib.Path = ROOT) -> str | None:
    """The revision of the tree, with a + when files were changed; None where git or its history is missing."""
    revision = _git(root, "rev-parse", "HEAD")
    changed = _git(root, "status", "--porcelain", "--", *MEASURED)
    if revision is None or changed is None:
        return None
    return revision + ("+" if changed else "")


def code(root: pathlib.Path = ROOT) -> str:
    """Equal for two revisions whose library is the same, so that a run may go on after a commit to the docs."""
    trees = [_git(root, "rev-parse", f"HEAD:{part}") or "unknown" for part in ("src", "native")]
    return " ".join(tree[:12] for tree in trees)


def refusal(root: pathlib.Path = ROOT) -> str | None:
    """Why nothing that is measured now could be a result, or None."""
    revision = commit(root)
    if revision is None:
        return "the revision is unknown (no git history here)"
    if revision.endswith("+"):
        return "files differ from the revision (git status): commit them"
    if _git(root, "rev-parse", "-q", "--verify", "main") and not _in_history(revision, root, "main"):
        return "the revision is not on main: a rebase or squash would take it out of the history"
    return _foreign_build(root)


def _foreign_build(root: pathlib.Path) -> str | None:
    """Why the installed maxmargin is not the one of this tree, or None."""
    spec = importlib.util.find_spec("maxmargin")
    if spec is None or not spec.submodule_search_locations:
        return "maxmargin is not installed"
    folders = [pathlib.Path(folder) for folder in spec.submodule_search_locations]
    source = root / "src" / "maxmargin"
    if source not in folders:  # a copy, which may be an old one
        for path in source.rglob("*.py"):
            copy = folders[0] / path.relative_to(source)
            if not copy.exists() or not filecmp.cmp(path, copy, shallow=False):
                return f"the installed maxmargin is not this tree's ({path.name} differs): pip install . again"
    built = [path.stat().st_mtime for folder in folders for path in folder.glob("_core_*")]
    sources = [path for path in (root / "native").rglob("*") if path.is_file()]
    newer = [path.name for path in sources if not built or path.stat().st_mtime > min(built)]
    return f"the build is older than {newer[0]}: make, or pip install . again" if newer else None


def faults(run: dict[str, Any], root: pathlib.Path = ROOT) -> list[str]:
    """What is wrong with the origin of a stored result, once per fault; empty when all is well."""
    found = []
    for revision in dict.fromkeys(record.get("commit") for record in run["records"]):
        if revision is None:
            found.append("records that name no revision")
        elif revision.endswith("+"):
            found.append(f"measured with changes to revision {revision[:8]}")
        elif not _in_history(revision, root):
            found.append(f"revision {revision[:8]} is not in the history")
    return found


def named(run: dict[str, Any]) -> str:
    """The revisions of a run for a reader, loud about what cannot be repeated."""
    known = dict.fromkeys(record.get("commit") for record in run["records"])
    clean = [revision[:8] for revision in known if revision and not revision.endswith("+")]
    words = [f"revision{'s' if len(clean) > 1 else ''} {', '.join(clean)}"] if clean else []
    if len(clean) < len(known):
        words.append("**a revision that is not on record: to be measured again**")
    return " and ".join(words)


@functools.cache
def _in_history(revision: str, root: pathlib.Path, tip: str = "HEAD") -> bool:
    return _git(root, "merge-base", "--is-ancestor", revision, tip) is not None


def history(root: pathlib.Path = ROOT) -> bool:
    """Whether the whole history is at hand: no sdist (perhaps unpacked inside another repository), no shallow clone."""
    own = (root / ".git").exists()
    return own and _git(root, "rev-parse", "--is-shallow-repository") == "false"


def _git(root: pathlib.Path, *words: str) -> str | None:
    """The answer of git, or None where it has none."""
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()

"""Command lines of ranks that are threads, word by word: what the program of one process does with them, they do too."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
from maxmargin import data, spmd
from maxmargin.cli import program
from maxmargin.cli.console import BAD_INPUT, DONE, NOT_CONVERGED
from maxmargin.runtime import Serial, Threads
from maxmargin.spmd import command

LINEAR, EXACT = ["-t", "0", "-e", "1e-6"], ["-t", "2", "-g", "0.5", "-e", "1e-6"]


class Other(Serial):
    """As the only rank, but not the first one."""

    rank = 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Labels come in order, so that no rank sees all of them; the last feature is in the last row alone."""
    rng = np.random.default_rng(1)
    y = np.repeat([1, 2, 3], 15)
    X = np.round(rng.normal(size=(45, 4)), 3) + np.eye(4)[y % 4]
    X[:-1, -1] = 0.0
    data.save(tmp_path / "x.svm", X, y)
    data.save(tmp_path / "x.npy", X, y)
    data.save(tmp_path / "target.svm", X, np.append(X[:-1, 0].round(), 0.5))
    data.save(tmp_path / "three.svm", X[[0, 20, 40]], y[[0, 20, 40]])
    rows = [",".join(map(str, row)) for row in X[:, :3]]
    (tmp_path / "words.csv").write_text("".join(f"{'abc'[k - 1]},{row}\n" for k, row in zip(y, rows, strict=True)))
    (tmp_path / "bare.csv").write_text("".join(f"{row}\n" for row in rows))
    (tmp_path / "empty.svm").write_text("")
    monkeypatch.setattr(sys, "stderr", sys.stderr)  # ranks that are silent put another one in its place
    return tmp_path


def over(ranks: int, words: list[str]) -> list[int]:
    def main(comm: Any) -> int:
        try:
            return command.main(words, comm)
        except SystemExit as end:
            return int(end.code or 0)

    return Threads.run(ranks, main, timeout=60)


def trained(capsys: Any, words: list[str], ranks: int = 0) -> tuple[dict[str, Any], Any]:
    """What --json says and the model, of ranks or (0) of one process."""
    target = Path(words[-1])
    capsys.readouterr()
    words = ["train", "-q", "--json", *words]
    assert ([program.main(words)] if ranks == 0 else over(ranks, words)) == [DONE] * max(ranks, 1)
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line), maxmargin.load(target)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("words", [
    [*LINEAR, "x.svm"], [*EXACT, "x.svm"], [*LINEAR, "-w1", "5", "-w3", "0.1", "x.svm"], [*EXACT, "-w2", "9", "x.npy"],
    [*LINEAR, "--engine", "exact", "--format", "libsvm", "x.svm"], [*LINEAR, "-s", "3", "target.svm"],
    [*EXACT, "-s", "3", "target.svm"], [*LINEAR, "-s", "1", "x.svm"], [*EXACT, "-s", "2", "--label", "none", "bare.csv"],
    [*EXACT, "words.csv"], [*EXACT, "three.svm"], [*LINEAR, "--engine", "linear", "--format", "liblinear", "x.svm"],
], ids=" ".join)  # fmt: skip
def test_training_is_that_of_one_process(folder: Path, capsys: Any, ranks: int, words: list[str]) -> None:
    words = [*words[:-1], str(folder / words[-1])]
    here, alone = trained(capsys, [*words, str(folder / "alone")])
    there, model = trained(capsys, [*words, str(folder / "ranks")], ranks)
    for name in ("command", "machine", "engine", "data", "format", "status", "version"):
        assert there[name] == here[name]
    assert there["ranks"] == ranks and there["model"] == str(folder / "ranks")
    assert there["objective"] == pytest.approx(here["objective"], rel=1e-4)
    if hasattr(alone, "classes_"):
        assert model.classes_.tolist() == alone.classes_.tolist() and model.classes_.dtype.kind == alone.classes_.dtype.kind


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(("words", "message"), [
    (["-v", "3", "x.svm"], "-v is for one process"), (["--report", "r.html", "x.svm"], "--report is for one process"),
    (["-t", "4", "x.svm"], "-t precomputed is for one process"), (["-"], "standard input is for one process"),
    (["-b", "1", "x.svm"], "-b 1 is for one process"), (["--engine", "dc", "x.svm"], "dc is for one process"),
    (["--engine", "budget", "x.svm"], "budget is for one process"),
    (["--engine", "linear", "x.svm"], "--engine linear has no rbf kernel"),
    (["-t", "0", "--format", "libsvm", "x.svm"], "no place for models of --engine linear"),
    (["--format", "liblinear", "x.svm"], "no place for models of --engine exact"),
    (["--checkpoint-every", "3", "x.svm"], "give both"), (["target.svm"], "are no classes"),
    (["--label", "none", "bare.csv"], "needs labels"), (["-s", "3", "words.csv"], "needs numbers"),
    (["none.svm"], "none.svm"), (["-c", "-1", "x.svm"], "C=-1"),
], ids=lambda case: " ".join(case) if isinstance(case, list) else "")  # fmt: skip
def test_what_ranks_cannot_train_is_said_and_nothing_is_written(
    folder: Path, capsys: Any, ranks: int, words: list[str], message: str
) -> None:
    given = words[-1] if words[-1] == "-" else str(folder / words[-1])
    before = sorted(folder.iterdir())
    assert over(ranks, ["train", *words[:-1], given, str(folder / "model")]) == [BAD_INPUT] * ranks
    assert sorted(folder.iterdir()) == before
    assert command.main(["train", *words[:-1], given, str(folder / "model")], Serial()) == BAD_INPUT
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("python -m maxmargin.spmd train: error: ") and message in said


@pytest.mark.filterwarnings("ignore:The `probability`:FutureWarning")
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_predictions_are_those_of_one_process(folder: Path, capsys: Any, ranks: int) -> None:
    """To the last digit, of the file and of the score; of rows that are wider or narrower than the model, too."""
    X, y = data.load(folder / "x.npy")
    narrow = maxmargin.SVC(gamma=0.3, probability=True, random_state=0).fit(X[:, :3], y)
    for k, format in enumerate(("maxmargin", "libsvm")):
        maxmargin.save(narrow, folder / f"narrow{k}", format=format)
        maxmargin.save(maxmargin.SVC(gamma=0.3).fit(X, y), folder / f"wide{k}", format=format)
    maxmargin.save(maxmargin.LinearSVR().fit(X, X[:, 0]), folder / "numbers")
    cases = [["x.svm", "wide0"], ["x.svm", "wide1"], ["x.svm", "narrow0"], ["x.svm", "narrow1"], ["three.svm", "narrow0"],
             ["three.svm", "wide1"], ["--decision-values", "x.svm", "wide0"], ["--label", "none", "bare.csv", "narrow0"],
             ["-b", "1", "--label", "none", "bare.csv", "narrow0"], ["--json", "x.npy", "wide0"],
             ["target.svm", "numbers"]]  # fmt: skip
    bad = [["--decision-values", "x.svm", "numbers"], ["-b", "1", "x.svm", "wide0"], ["empty.svm", "wide0"],
           ["none.svm", "wide0"], ["x.npy", "narrow0"], ["x.svm", "none"], ["words.csv", "narrow0"]]  # fmt: skip
    for *options, rows, model in [*cases, *bad]:
        code = DONE if [*options, rows, model] in cases else BAD_INPUT
        words = ["predict", "-q", *options, str(folder / rows), str(folder / model)]
        for output in ([], [str(folder / "out")]):
            capsys.readouterr()
            assert program.main([*words, *output]) == code
            told, written = capsys.readouterr().out, (folder / "out").read_bytes() if (folder / "out").exists() else None
            (folder / "out").unlink(missing_ok=True)
            assert over(ranks, [*words, *output]) == [code] * ranks
            assert capsys.readouterr().out == told
            assert ((folder / "out").read_bytes() if (folder / "out").exists() else None) == written
            assert written is None or output
            (folder / "out").unlink(missing_ok=True)


def test_predictions_that_ranks_cannot_make_are_refused(folder: Path, capsys: Any) -> None:
    X, y = data.load(folder / "x.npy")
    maxmargin.save(maxmargin.SVC(kernel="precomputed").fit(X @ X.T, y), folder / "gram")
    maxmargin.save(maxmargin.SVC().fit(X, y), folder / "model")
    for rows, model, message in (("x.svm", "gram", "a precomputed kernel"), ("-", "model", "standard input")):
        given = rows if rows == "-" else str(folder / rows)
        assert over(2, ["predict", given, str(folder / model)]) == [BAD_INPUT] * 2
        assert command.main(["predict", given, str(folder / model)], Serial()) == BAD_INPUT
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("python -m maxmargin.spmd predict: error: ") and message in said and "one process" in said


def test_only_the_first_rank_speaks_and_only_if_it_may(folder: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spmd, "load", lambda path, comm, **options: data.load(path, **options))
    words, target = [*LINEAR, str(folder / "x.svm")], folder / "model"
    for comm, quiet in ((Serial(), []), (Serial(), ["-q"]), (Other(), []), (Other(), ["--quiet"])):
        assert command.main(["train", *quiet, *words, str(target)], comm) == DONE
        said = capsys.readouterr()
        assert ("engine linear" in said.err) == (comm.rank == 0 and not quiet)
        assert (f"model: {target}" in said.out.splitlines()) == target.exists() == (comm.rank == 0)
        assert said.out.startswith("LinearSVC: converged") if comm.rank == 0 else said.out == said.err == ""
        target.unlink(missing_ok=True)
        for bad in (["train", "--no-such-word"], ["train", str(folder / "none.svm")], []):
            try:
                code = command.main(bad, comm)
            except SystemExit as end:
                code = end.code
            assert code == BAD_INPUT and bool(capsys.readouterr().err) == (comm.rank == 0)


def test_words_are_the_programs_own_unless_given_and_are_not_guessed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    words = ["train", "-q", *EXACT, "-h", "0", str(folder / "x.svm")]
    monkeypatch.setattr(sys, "argv", ["maxmargin.spmd", *words, str(folder / "of the program")])
    assert command.main(comm=Serial()) == DONE and (folder / "of the program").exists()
    assert command.main([*words, str(folder / "given")], Serial()) == DONE
    assert maxmargin.load(folder / "given").shrinking is False  # LIBSVM's letters are known
    for bad in ([], ["trai"], ["--hel"], ["train", "--quie", *words[1:]], ["train"]):
        with pytest.raises(SystemExit) as end:
            command.main(bad, Serial())
        assert end.value.code == BAD_INPUT
    for asked, text in (
        (["--help"], command.EXAMPLES), (["--help"], str(command.__doc__).splitlines()[0]),
        (["train", "--help"], "--json"), (["predict", "--help"], "--decision-values"),
        (["train", "-h"], "--quiet"),
    ):  # fmt: skip
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            command.main(asked, Serial())
        assert end.value.code == 0 and text in capsys.readouterr().out


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_that_is_cut_short_leaves_its_checkpoint_and_a_finished_one_none(folder: Path, ranks: int) -> None:
    kept = folder / "run.ckpt"
    words = ["train", "-q", *LINEAR, "--checkpoint", str(kept), "--checkpoint-every", "1e-9"]
    names = [str(folder / "x.svm"), str(folder / "model")]
    assert over(ranks, [*words, "--max-iter", "1", *names]) == [NOT_CONVERGED] * ranks
    assert kept.exists() and maxmargin.load(names[1]).status_ == "max_iter" and maxmargin.load(names[1]).checkpoint is None
    assert over(ranks, [*words, *names]) == [DONE] * ranks
    assert not kept.exists() and maxmargin.load(names[1]).status_ == "converged"


def test_without_mpi_it_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(comm: Any) -> Any:
        raise ImportError("no MPI here")

    heard = io.StringIO()
    monkeypatch.setattr(command, "as_comm", missing)
    monkeypatch.setattr(sys, "stderr", heard)
    assert command.main(["train", "x"]) == BAD_INPUT
    assert heard.getvalue() == "python -m maxmargin.spmd: error: no MPI here\n"


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("zero_based", ["auto", True, False, None])
@pytest.mark.parametrize("n_features", [None, 7])
def test_columns_are_those_of_the_whole_file(tmp_path: Path, first: int, zero_based: Any, n_features: Any) -> None:
    """Wherever its first and its last index are: no rank reads both."""
    path = tmp_path / "x.svm"
    path.write_text("".join(f"1 {k}:{k + 1}\n" for k in (first, *[2] * 20, 4)))
    options = {name: value for name, value in (("zero_based", zero_based), ("n_features", n_features)) if value is not None}
    if first == 0 and zero_based is False:
        with pytest.raises(ValueError, match="index"):
            Threads.run(2, lambda comm: spmd.load(path, comm=comm, **options))
        return
    X, y = data.load(path, **options)
    for ranks in (1, 3):
        parts = Threads.run(ranks, lambda comm: spmd.load(path, comm=comm, **options))
        np.testing.assert_array_equal(np.vstack([part.toarray() for part, _ in parts]), X.toarray())
        assert sum(len(labels) for _, labels in parts) == len(y)

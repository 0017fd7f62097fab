"""Would a test notice? Changes one thing at a time in a copy of the package and runs the tests that should.

    python tests/mutants problem decomposition --count 25 --seed 1     # so many changes per room, drawn at random
    python tests/mutants --named                                       # those that once went unnoticed (named.py)
    python tests/mutants --native kernel linear --count 10             # of rooms of the C++ core, each compiled

A change is killed when a test fails or hangs. The copy is in a temporary folder; no source is touched.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from pathlib import Path

import pytest

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy comes: children are forked
sys.path.insert(0, str(Path(__file__).parent))
import native
import records
from named import NAMED, NATIVE
from operators import Mutant, changes, mutant

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "maxmargin"
ORIGINAL: list[Path] = []  # where the package was copied to when the run began
WITHOUT = shutil.ignore_patterns("__pycache__", "*.so")
UNCHANGED = Mutant("__init__.py", 1, "", "", (PACKAGE / "__init__.py").read_text())
LIBRARIES = (
    "numpy", "scipy.sparse", "scipy.optimize", "scipy.linalg", "sklearn.svm", "sklearn.pipeline", "sklearn.datasets",
    "sklearn.model_selection", "sklearn.utils.estimator_checks", "hypothesis", "joblib", "tqdm.auto", "pandas",
)  # fmt: skip
HANG = 45  # seconds for one test, and five times what it takes without a change: then it hangs, which is noticed
# First in the child and, as sitecustomize, in programs that tests start: an editable installation would hide the copy.
FIRST = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "Redirecting" not in type(finder).__name__]
"""
HUNG, SLOW, NEVER = "a test hung", "ten times as slow", "no test of this room runs it"
# Tests that should notice; of these, a change is tried on those that run its line (records.py).
TESTS = {
    "problem": ["unit/test_formulations.py", "unit/test_certificates.py", "unit/test_certificates_edges.py",
                "unit/test_bad_input.py", "unit/test_exact_ends.py", "contract", "property/test_exact.py",
                "property/test_extreme_inputs.py", "unit/test_prediction.py"],
    "runtime": ["unit/test_runtime_parts.py", "unit/test_run.py", "unit/test_progress.py",
                "unit/test_several.py", "unit/test_checkpoints_ends.py",
                "unit/test_checkpoints_refused.py", "unit/test_exact_ends.py", "contract",
                "unit/test_dc_report.py", "unit/test_linear_trace.py", "ranks/test_comm.py",
                "ranks/test_linear.py", "unit/test_shared_by_threads.py"],
    "decomposition": ["unit/test_decomposition_parts.py", "unit/test_decomposition_inner.py",
                      "unit/test_decomposition_runs.py", "ranks/test_exact.py", "ranks/test_shared_values.py",
                      "unit/test_working_set.py", "unit/test_solve_qp.py", "property/test_inner_solvers.py",
                      "unit/test_inner_in_fit.py", "property/test_stopped_runs.py", "unit/test_exact_ends.py", "contract",
                      "property/test_exact.py", "property/test_extreme_inputs.py", "unit/test_together.py"],
    "divide": ["unit/test_divide_constants.py", "unit/test_divide_committee.py", "unit/test_divide.py", "unit/test_dc.py",
               "unit/test_dc_report.py", "property/test_divide_contract.py", "property/test_divide_theorems.py",
               "property/test_divide_stops.py", "unit/test_dc_backends.py", "unit/test_divide_afar.py"],
    "budget": ["unit/test_budget_rules.py", "unit/test_budget_merging.py", "unit/test_budget_sgd.py",
               "unit/test_budget_refit.py", "unit/test_budget_estimator.py", "property/test_budget_properties.py",
               "property/test_budget_contract.py"],
    "estimators": ["unit/test_estimator_parts.py", "unit/test_estimator_fits.py", "unit/test_prediction.py",
                   "unit/test_bad_input.py",
                   "unit/test_exact_ends.py", "contract", "unit/test_budget_estimator.py", "unit/test_dc.py",
                   "unit/test_linear_weights.py", "unit/test_linear_classes.py", "unit/test_linear_warm.py",
                   "unit/test_linear_far_from_zero.py", "unit/test_linear_path.py", "property/test_exact.py",
                   "unit/test_pickle.py", "unit/test_checkpoints_refused.py", "unit/test_checkpoints_ends.py",
                   "sklearn_api/test_probability.py", "ranks/test_exact.py", "ranks/test_linear.py",
                   "unit/test_single_rows.py", "sklearn_api/test_dropin.py", "sklearn_api/test_conventions.py",
                   "sklearn_api/test_upstream_svm.py"],
    "linear": ["unit/test_one_norm_turns.py", "unit/test_newton_turns.py", "unit/test_descent_rounds.py",
               "unit/test_directions_parts.py", "unit/test_ranked_problem.py",
               "unit/test_joint_turns.py", "unit/test_reduced_problem.py", "unit/test_linear_allowances.py",
               "unit/test_linear_core.py", "unit/test_linear_problem.py", "unit/test_linear_certified.py",
               "unit/test_one_norm_parts.py", "property/test_linear_regression_fuzz.py",
               "unit/test_linear_rounding.py", "unit/test_linear_warm.py", "unit/test_linear_weights.py",
               "unit/test_linear_trace.py", "unit/test_newton_directions.py",
               "unit/test_linear_search.py", "property/test_ocas_certificate.py",
               "property/test_crammer_singer_certificate.py", "property/test_linear_one_norm.py",
               "unit/test_quadratic_model.py", "unit/test_linear_descent.py",
               "property/test_linear_fuzz.py", "unit/test_linear_classes.py", "unit/test_linear_path.py",
               "unit/test_linear_far_from_zero.py", "contract", "ranks/test_linear.py"],
    "kernel_values": ["unit/test_kernel_sources.py", "unit/test_kernel_values.py", "unit/test_far_pairs.py",
                      "unit/test_kept_rows.py", "contract",
                      "unit/test_prediction.py", "unit/test_single_rows.py", "unit/test_bad_input.py",
                      "unit/test_mostly_zero.py", "ranks/test_shared_values.py", "ranks/test_exact.py"],
    "selection": ["selection", "unit/test_selection_linear.py", "unit/test_selection_clusters.py",
                  "unit/test_linear_path.py", "sklearn_api/test_selection_sklearn.py"],
    "models": ["unit/test_models_native.py", "unit/test_models_text.py", "unit/test_models_damage.py",
               "unit/test_models_old.py", "unit/test_models_onnx.py", "unit/test_models_skops.py", "unit/test_pickle.py"],
    "dask": ["clusters/test_dask_partitions.py", "clusters/test_dask_values.py", "clusters/test_dask_whole.py",
             "clusters/test_dask_machines.py",
             "clusters/test_dask_linear.py", "clusters/test_dask_divided.py", "clusters/test_dask_budget.py"],
    "carriers": ["clusters/test_carrier_calls.py", "clusters/test_carriers.py", "clusters/test_ray.py",
                 "unit/test_dc_backends.py"],
    "spmd": ["ranks/test_given.py", "ranks/test_command_words.py", "ranks/test_command.py", "ranks/test_comm.py",
             "ranks/test_linear.py", "ranks/test_exact.py", "ranks/test_mpi.py"],
    "data": ["unit/test_libsvm_format.py", "unit/test_data_files.py", "unit/test_data_properties.py",
             "unit/test_data_rows.py", "unit/test_data_atomic.py", "unit/test_mostly_zero.py",
             "unit/test_linear_far_from_zero.py", "unit/test_models_damage.py", "unit/test_models_native.py"],
    "cli": ["cli"],
    "plots": ["unit/test_plots_parts.py", "unit/test_plots.py"],
    "reports": ["unit/test_reports_parts.py", "unit/test_reports.py"],
}  # fmt: skip
NATIVE_TESTS = {
    "base": ["unit/test_core_base.py", "unit/test_core_kernel.py", "unit/test_many_rows.py", "unit/test_kernel_values.py",
             "unit/test_core_linear.py", "unit/test_together.py", "unit/test_budget_rules.py", "unit/test_libsvm_format.py",
             "unit/test_threads.py", "unit/test_core_isa.py"],
    "kernel": ["unit/test_core_kernel.py", "unit/test_kernel_values.py", "unit/test_far_pairs.py",
               "unit/test_mostly_zero.py", "unit/test_kept_rows.py", "unit/test_single_rows.py", "unit/test_wide_rows.py",
               "unit/test_together.py", "unit/test_coarse_values.py", "property/test_one_row_or_batch.py",
               "unit/test_prediction.py", "property/test_exact.py"],
    "decomposition": ["unit/test_core_gram.py", "unit/test_core_family_starts.py", "unit/test_core_family_turns.py",
                      "unit/test_core_family_ends.py", "unit/test_core_many.py", "unit/test_core_inner_smo.py",
                      "unit/test_core_free_step.py", "unit/test_core_part_state.py", "unit/test_core_row_cache.py",
                      "unit/test_core_part_rows.py", "unit/test_free_step.py", "unit/test_decomposition_parts.py",
                      "unit/test_decomposition_inner.py", "unit/test_decomposition_runs.py",
                      "unit/test_kept_rows.py", "unit/test_together.py", "unit/test_working_set.py", "unit/test_solve_qp.py",
                      "unit/test_wide_rows.py", "unit/test_exact_ends.py", "property/test_inner_solvers.py",
                      "property/test_stopped_runs.py", "property/test_exact.py", "ranks/test_shared_values.py",
                      "unit/test_selection_clusters.py", "selection/test_selection_oracle.py",
                      "selection/test_selection_chain.py", "sklearn_api/test_selection_sklearn.py"],
    "linear": ["unit/test_core_linear.py", "unit/test_linear_core.py", "unit/test_many_rows.py",
               "unit/test_linear_search.py", "unit/test_reduced_problem.py", "unit/test_one_norm_parts.py",
               "unit/test_directions_parts.py", "unit/test_linear_warm.py", "property/test_ocas_certificate.py",
               "property/test_crammer_singer_certificate.py", "property/test_linear_one_norm.py",
               "unit/test_quadratic_model.py", "unit/test_linear_problem.py", "unit/test_newton_directions.py",
               "unit/test_linear_certified.py", "unit/test_linear_descent.py", "unit/test_newton_turns.py",
               "unit/test_joint_turns.py"],
    "budget": ["unit/test_core_budget_steps.py", "unit/test_core_budget_values.py", "unit/test_budget_rules.py",
               "unit/test_budget_merging.py", "unit/test_budget_sgd.py", "unit/test_budget_refit.py",
               "property/test_budget_properties.py", "property/test_budget_contract.py"],
    "divide": ["unit/test_core_nearest.py", "unit/test_divide.py", "unit/test_divide_afar.py",
               "property/test_divide_theorems.py", "unit/test_dc.py"],
    "data": ["unit/test_core_data_rows.py", "unit/test_core_libsvm_text.py", "unit/test_core_tables_text.py",
             "unit/test_core_numbers_text.py", "unit/test_libsvm_format.py", "unit/test_data_files.py",
             "unit/test_data_properties.py", "unit/test_data_rows.py", "unit/test_mostly_zero.py", "unit/test_data_fuzz.py"],
}  # fmt: skip


def core() -> str:
    """The compiled module: the one asked for, or the installed one."""
    if "MAXMARGIN_CORE" in os.environ:
        return os.environ["MAXMARGIN_CORE"]
    code = "import maxmargin._core, sys; print(next(m.__file__ for n, m in sys.modules.items() if 'margin._core_' in n))"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def noticed(change: Mutant, tests: list[str], runs: dict[str, records.Run]) -> str:
    """By which of these tests it was killed; nothing if by none. How long each takes without the change is in `runs`."""
    seconds = [runs[name].seconds for name in tests]
    hang, limit = HANG + 5 * max(seconds), 2 * HANG + 10 * sum(seconds)
    with copied(change) as folder:
        said = folder / "said"
        options = ["-x", f"--timeout={hang:.0f}", *{str(ROOT / name.split("::")[0]): 0 for name in tests}]
        child = forked(lambda: _pytest(folder, said, options, records.Chosen(tests)))
        end = time.time() + limit
        with ending(child):
            while (done := os.waitpid(child, os.WNOHANG))[0] == 0:
                if time.time() > end:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    return SLOW
                time.sleep(0.05)
        lines = said.read_text(errors="replace").strip().splitlines()
    if done[1] == 0:
        return ""
    if any("+ Timeout +" in line for line in lines):
        return HUNG
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0] if failed else lines[-1] if lines else "a crash"


def recorded(file: Path) -> dict[str, records.Run]:
    """What the tests of a file run, without any change."""
    print(f"recording {file.relative_to(ROOT)}", flush=True)
    with copied(UNCHANGED) as folder:
        recorder = records.Recorder(folder / "maxmargin")

        def run() -> int:
            failed = _pytest(folder, folder / "said", [str(file)], recorder)
            (folder / "runs").write_bytes(pickle.dumps(recorder.runs))
            return failed

        child = forked(run)
        with ending(child):
            code = os.waitpid(child, 0)[1]
        if code not in (0, pytest.ExitCode.NO_TESTS_COLLECTED << 8):
            raise SystemExit(f"{file} fails without any change:\n{(folder / 'said').read_text()[-2000:]}")
        runs: dict[str, records.Run] = pickle.loads((folder / "runs").read_bytes())
        return runs


@contextmanager
def copied(change: Mutant) -> Iterator[Path]:
    """A folder with a copy of the package that has the change."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "maxmargin"
        shutil.copytree(ORIGINAL[0], copy)
        for module in Path(os.environ["MAXMARGIN_CORE"]).parent.glob("*.so"):
            (copy / module.name).symlink_to(module)
        if not change.path.endswith(".hpp"):  # one of the core is in its module
            (copy / change.path).write_text(change.source)
        (Path(folder) / "sitecustomize.py").write_text(FIRST)
        yield Path(folder)


def forked(run: Callable[[], int]) -> int:
    """A child with all that tests import but the package, which takes longer than many of them."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os._exit(run())
    return child


@contextmanager
def ending(child: int) -> Iterator[None]:
    """At the end nothing of it is left, nor of what it started: ranks of a test that hung would take whole cores."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)


def _pytest(folder: Path, said: Path, options: list[str], plugin: object) -> int:
    """In the child: run tests with the copy in the place of the installed package, whatever way that was installed."""
    out = os.open(said, os.O_WRONLY | os.O_CREAT)
    for stream in (1, 2):
        os.dup2(out, stream)
    exec(FIRST)
    sys.path.insert(0, str(folder))
    os.environ["PYTHONPATH"] = str(folder)  # for programs that tests start
    sys.dont_write_bytecode = True
    os.chdir(ROOT)
    try:
        import maxmargin

        assert str(maxmargin.__file__).startswith(str(folder))
        quiet = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", f"--rootdir={ROOT}", "--timeout-method=thread"]
        return int(pytest.main([*quiet, *options], plugins=[plugin]))
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return 1
    finally:
        sys.stdout.flush()


def drawn(room: str, count: int, seed: int) -> list[Mutant]:
    files = {str(f.relative_to(PACKAGE)): f.read_text() for f in sorted((PACKAGE / room).rglob("*.py"))}
    every = [(path, change) for path, source in files.items() for change in changes(source)]
    random.Random(f"{room} {seed}").shuffle(every)
    made = (mutant(path, files[path], *change) for path, change in every)
    return list(islice((m for m in made if m is not None), count))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="*", choices=[*(TESTS | NATIVE_TESTS), []], help="folders of the package")
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--named", action="store_true", help="the changes of named.py instead")
    parser.add_argument("--native", action="store_true", help="changes of the C++ core, whose rooms these are")
    parser.add_argument("--seconds", type=float, default=30.0, help="of tests for one change, the quick ones first")
    parser.add_argument("--tests", nargs="*", help="of tests/, instead of those named for the room")
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the changes to try")
    asked = parser.parse_args()
    os.environ["MAXMARGIN_CORE"] = core()
    for library in LIBRARIES:
        importlib.import_module(library)
    tests_of = NATIVE_TESTS if asked.native else TESTS
    rooms = asked.rooms or list(tests_of)
    draw = partial(native.drawn, ROOT / "native") if asked.native else drawn
    todo = named(rooms, asked.native) if asked.named else {room: draw(room, asked.count, asked.seed) for room in rooms}
    with tempfile.TemporaryDirectory() as folder:
        ORIGINAL.append(shutil.copytree(PACKAGE, Path(folder) / "maxmargin", ignore=WITHOUT))
        build = native.Build(ROOT, ROOT / "build" / "mutants" / "native") if asked.native else None
        return tried(todo, asked, build, tests_of)


def tried(todo: dict[str, list[Mutant]], asked: argparse.Namespace, build: native.Build | None,
          tests_of: dict[str, list[str]]) -> int:
    """Each change on the tests of its room: 1 if any survived."""
    known = records.Records(ROOT, recorded)
    survivors = 0
    green: dict[str, bool] = {}  # whether a test that failed with a change passes without
    for room in todo:
        runs = known.runs(asked.tests or tests_of[room], {change.path for change in todo[room]})
        killed = tried = 0
        for k, change in enumerate(todo[room]):
            if asked.only and k not in asked.only:
                continue
            begun = time.time()
            tests = records.telling(runs, change.path, change.line, change.source, asked.seconds)
            whole = os.environ["MAXMARGIN_CORE"]
            if build is not None:
                module = build.module(change)
                if module is None:
                    continue
                os.environ["MAXMARGIN_CORE"] = str(module)
            by = noticed(change, tests, runs) if tests else NEVER
            os.environ["MAXMARGIN_CORE"] = whole
            test = by.partition(" ")[2]
            if test in runs and not green.setdefault(test, not noticed(UNCHANGED, [test], runs)):
                raise SystemExit(f"{test} fails without any change")
            dead = bool(by) and by not in (SLOW, NEVER)
            tried, killed = tried + 1, killed + dead
            how = f"{'killed' if dead else 'SURVIVED'} {len(tests)} tests {time.time() - begun:.0f} s {by}"
            print(f"{room} {k:3d} {change}\n        {how}", flush=True)
        print(f"{room}: {killed} of {tried} killed", flush=True)
        survivors += tried - killed
    return min(survivors, 1)


def named(rooms: list[str], of_core: bool) -> dict[str, list[Mutant]]:
    out: dict[str, list[Mutant]] = {}
    for room, path, before, after in (row for row in (NATIVE if of_core else NAMED) if row[0] in rooms):
        source = ((ROOT / "native" if of_core else PACKAGE) / path).read_text()
        if source.count(before) != 1:
            raise SystemExit(f"{path} has {source.count(before)} times {before!r}: bring named.py up to date")
        line = source[: source.index(before)].count("\n") + 1
        out.setdefault(room, []).append(Mutant(path, line, before, after, source.replace(before, after)))
    return out


if __name__ == "__main__":
    sys.exit(main())

"""What carriers ask of joblib, Dask and Ray, call by call: on stand-ins that remember it, and on workers in this process."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from concurrent.futures import CancelledError
from contextlib import contextmanager
from types import SimpleNamespace

import dask
import joblib
import numpy as np
import pytest
from distributed import Event, KilledWorker
from joblib._parallel_backends import ThreadingBackend

from maxmargin.carriers import GONE, LostError, active_carrier, by_joblib, never, on_dask, workers
from maxmargin.carriers.on_dask import DaskCarrier
from maxmargin.carriers.on_ray import RayCarrier


class Whole(ThreadingBackend):
    """Hands over a whole list, and nothing before."""

    supports_return_generator = False


joblib.register_parallel_backend("whole", Whole)
KILLED = KilledWorker("task", SimpleNamespace(address="tcp://gone:1"), 3)
SIDE_BY_SIDE = pytest.mark.parametrize("backend", ["threading", "whole"])


# joblib


@pytest.mark.parametrize(("backend", "shared"), [("threading", True), ("loky", False), ("multiprocessing", False)])
def test_as_many_calls_at_a_time_as_the_backend_was_told(backend, shared):
    for jobs in (2, 3):
        with joblib.parallel_config(backend, n_jobs=jobs):
            assert workers(7) == (jobs, shared)
    with joblib.parallel_config(backend, n_jobs=-1):
        assert workers(7) == (joblib.cpu_count(), shared)


def test_who_was_told_nothing_has_a_call_for_each_thread():
    assert workers(7) == (7, True)
    with joblib.parallel_config("threading", n_jobs=1):
        assert workers(7) == (7, True)


def test_memory_is_not_shared_by_a_backend_that_does_not_say_so(monkeypatch):
    monkeypatch.setattr(joblib.parallel, "get_active_backend", lambda **_: (object(), None))
    assert workers(2) == (2, False)


@SIDE_BY_SIDE
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_every_call_is_made_once(backend, jobs):
    made, results = [], []
    with joblib.parallel_config(backend, n_jobs=jobs):
        for _ in by_joblib([joblib.delayed(lambda k: made.append(k) or k)(k) for k in range(11)], jobs, results):
            assert results
    assert sorted(results) == sorted(made) == list(range(11))


def test_a_backend_that_hands_over_lists_gets_a_call_for_each_worker_and_then_others():
    made, results, there = [], [], []
    with joblib.parallel_config("whole", n_jobs=3):
        for _ in by_joblib([joblib.delayed(lambda k: made.append(k) or k)(k) for k in range(8)], 3, results):
            assert sorted(made) == results
            there.append(len(results))
    assert there == [3, 6, 8] and results == list(range(8))


def test_a_slow_call_does_not_hold_up_those_after_it():
    go, results = threading.Event(), []

    def call(k):
        assert k > 0 or go.wait(30)
        return k

    with joblib.parallel_config("threading", n_jobs=2):
        coming = by_joblib([joblib.delayed(call)(k) for k in range(5)], 2, results)
        for there in range(1, 5):
            next(coming)
            assert len(results) == there and 0 not in results
        go.set()
        assert list(coming) == [None] and sorted(results) == list(range(5))


@SIDE_BY_SIDE
def test_calls_run_side_by_side(backend):
    """Each waits for another one: a worker that had two of them to do would wait for ever."""
    meeting, results = threading.Barrier(2), []
    with joblib.parallel_config(backend, n_jobs=2):
        for _ in by_joblib([joblib.delayed(meeting.wait)(5.0) for _ in range(4)], 2, results):
            pass
    assert sorted(results) == [0, 0, 1, 1]


def test_the_carrier_is_the_cluster_that_joblib_was_told(monkeypatch):
    within = []

    @contextmanager
    def retrieving(self):
        within.append(True)
        yield
        within.pop()

    def kind(module, name):
        parts = {"retrieval_context": retrieving, "client": Told(), "ray_remote_args": {"num_cpus": 3}}
        return type(name, (), {"__module__": module, **parts})()

    monkeypatch.setitem(sys.modules, "ray", Rays())
    for module, name, made in [
        ("joblib._dask", "DaskDistributedBackend", DaskCarrier),
        ("ray.util.joblib.ray_backend", "RayBackend", RayCarrier),
        ("joblib._parallel_backends", "LokyBackend", type(None)),
    ]:
        backend = kind(module, name)
        monkeypatch.setattr(joblib.parallel, "get_active_backend", lambda backend=backend, **_: (backend, 2))
        with active_carrier() as carrier:
            assert type(carrier) is made and bool(within) == (made is DaskCarrier)
            if made is DaskCarrier:
                assert carrier.client is backend.client
            if made is RayCarrier:
                assert carrier.call(int).options == {"num_cpus": 3}
        assert not within


# Dask


class Told:
    """A client that remembers what it was asked for; `fails` says with what it fails, if it does."""

    direct_to_workers, status = None, "running"
    scheduler = SimpleNamespace(address="tcp://somewhere:1")

    def __init__(self, threads=None, fails=lambda name, args, options: None):
        self.threads, self.fails, self.told = threads or {}, fails, []

    def nthreads(self):
        return self.threads

    def __getattr__(self, name):
        def ask(*args, **options):
            self.told.append((name, options))
            error = self.fails(name, args, options)
            if error is not None:
                raise error
            return args[0]

        return ask


def finished(work, homes, threads):
    """When the last of the workers is done."""
    return max(sum(w for w, home in zip(work, homes) if home == name) / threads[name] for name in threads)


@pytest.mark.parametrize("threads", [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"c": 4, "a": 1, "b": 2}, {"only": 3}])
def test_work_is_spread_nearly_as_well_as_can_be(threads):
    """The largest first, each where it is done first: at most 2 m / (m + 1) times the best of all (Gonzalez et al. 1977)."""
    rng, carrier = np.random.default_rng(0), DaskCarrier(Told(threads))
    for count in [0, 1, 2, 3, 3, 4, 4, 5, 5, 6, 6]:
        work = (rng.integers(1, 9, count) / 64).tolist()
        homes = carrier.spread(work)
        best = min(finished(work, every, threads) for every in itertools.product(threads, repeat=count))
        assert len(homes) == count and finished(work, homes, threads) <= 2 * len(threads) / (len(threads) + 1) * best
        assert carrier.spread([1024 * w for w in work]) == homes  # in whatever unit


def test_equal_work_is_spread_by_threads():
    homes = DaskCarrier(Told({"a": 1, "b": 3})).spread([1e-3] * 40)
    assert homes.count("a") == 10 and homes.count("b") == 30


def test_without_workers_there_is_no_home():
    assert DaskCarrier(Told()).spread([2.0, 1.0]) == [None, None]


def test_what_is_quick_goes_first_and_then_what_came_first():
    client = Told()
    carrier = DaskCarrier(client)
    ways = [carrier.call, carrier.solve, carrier.solve, carrier.call, carrier.solve, carrier.call]
    for way in ways:
        way(int, 0)
    order = np.argsort([-options["priority"] for _, options in client.told], kind="stable")
    assert order.tolist() == [0, 3, 5, 1, 2, 4] and len({options["priority"] for _, options in client.told}) == 6


def test_values_and_calls_are_at_home_where_they_are_told(two_workers):
    carrier = DaskCarrier(two_workers)
    names = sorted(two_workers.nthreads())
    for at in [*names, *names]:
        refs = [carrier.put([1, 2], at), *carrier.put_all([3, (4,)], at), carrier.call(abs, -5, at=at)]
        assert carrier.homes(refs) == [at] * 4
        assert [carrier.get(ref) for ref in refs] == carrier.values(refs) == [[1, 2], 3, (4,), 5]
    assert carrier.values([]) == [] and carrier.homes([]) == []


def test_a_call_for_a_worker_that_is_not_there_is_made_by_another(two_workers):
    carrier = DaskCarrier(two_workers)
    ref = carrier.call(abs, -5, at="tcp://127.0.0.1:1")
    assert carrier.wait([ref], 20.0) == [ref] and carrier.get(ref) == 5


def test_equal_values_and_equal_calls_are_each_ones_own(two_workers):
    """What one gives up, another still has; a function that is called twice is called twice."""
    carrier = DaskCarrier(two_workers)
    ways = [lambda: carrier.put("same"), lambda: carrier.call(str, "same"), lambda: carrier.solve(lambda stopped: "same")]
    for way in ways:
        one, other = way(), way()
        assert carrier.get(one) == "same"
        carrier.drop([one])
        assert carrier.wait([other], 20.0) == [other] and carrier.get(other) == "same"


def test_homes_of_what_is_lost_or_failed_are_gone_and_one_waits_for_the_rest(two_workers):
    carrier, go = DaskCarrier(two_workers), Event("go", client=two_workers)

    def after():
        assert Event("go").wait(20)
        return "late"

    lost, failed, late, put = carrier.put(1), carrier.call(int, "no number"), carrier.call(after), carrier.put(2)
    carrier.drop([lost])
    assert carrier.wait([failed], 20.0) == [failed]
    threading.Timer(0.2, go.set).start()
    homes = carrier.homes([lost, late, failed, put])
    assert homes[0] is GONE and homes[2] is GONE and {homes[1], homes[3]} <= set(two_workers.nthreads())
    assert late.status == "finished" and carrier.homes([lost]) == [GONE]


def test_whoever_waits_leaves_the_configuration_of_dask_alone(client):
    """Also two threads at once, the first to begin being the first to end."""
    carrier, ends, waiting = DaskCarrier(client), [Event(name, client=client) for name in ("first", "second")], []

    def until(name):
        return Event(name).wait(20)

    with dask.config.set(scheduler="threads"):
        for end in ends:
            thread = threading.Thread(target=carrier.wait, args=([carrier.call(until, end.name)], 20.0))
            thread.start()
            waiting.append(thread)
            time.sleep(0.1)
            assert dask.config.get("scheduler") == "threads"
        for end, thread in zip(ends, waiting):
            end.set()
            thread.join()
        assert dask.config.get("scheduler") == "threads"


def test_homes_are_asked_again_when_one_is_lost_meanwhile():
    refs = [SimpleNamespace(key=str(k), status="finished") for k in range(3)]
    answers = [CancelledError(), {"0": ["a", "b"], "2": ["b"]}]

    class Losing(Told):
        def who_has(self, there):
            assert there == [ref for ref in refs if ref.status == "finished"]
            refs[1].status = "cancelled"
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

    assert DaskCarrier(Losing()).homes(refs) == ["a", GONE, "b"] and not answers


def test_only_what_is_there_is_dropped_and_only_by_a_client_that_runs():
    """By force: though somebody else holds on to it."""
    for status, refs in itertools.product(["running", "closed", "closing"], [[], ["ref"]]):
        client = Told()
        client.status = status
        DaskCarrier(client).drop(refs)
        assert client.told == ([("cancel", {"force": True})] if refs and status == "running" else [])


@pytest.mark.parametrize("error", [OSError("no way"), TimeoutError("no way")])
def test_values_for_a_place_where_nobody_is_go_anywhere_else(error):
    away = Told(fails=lambda name, args, options: error if "workers" in options else None)
    assert DaskCarrier(away).put_all([1, 2], "a") == [1, 2] and DaskCarrier(away).put([3], "a") == [3]
    assert [options.get("workers") for _, options in away.told] == [["a"], None] * 2
    here = Told()
    assert DaskCarrier(here).put_all([1, 2], "a") == [1, 2] and [o["workers"] for _, o in here.told] == [["a"]]
    nowhere = Told(fails=lambda *_: error)
    for at in (None, "a"):
        with pytest.raises(RuntimeError, match=r"tcp://somewhere:1.*no way.*direct_to_workers=False"):
            DaskCarrier(nowhere).put(1, at)


@pytest.mark.parametrize("error", [CancelledError("gone"), KILLED, OSError("gone")])
def test_lost_values_are_told_from_those_that_are_there(error):
    client = Told(fails=lambda name, args, options: error if "lost" in args[0] else None)
    carrier = DaskCarrier(client)
    assert carrier.get("there") == "there" and carrier.values(["a", "b"]) == ["a", "b"]
    with pytest.raises(LostError):
        carrier.get("lost")
    got = carrier.values(["a", "lost", "b"])
    assert got[::2] == ["a", "b"] and isinstance(got[1], LostError)


def test_an_error_of_the_function_is_no_loss():
    carrier = DaskCarrier(Told(fails=lambda *_: ValueError("its own")))
    for ask in (lambda: carrier.get("ref"), lambda: carrier.values(["ref"])):
        with pytest.raises(ValueError, match="its own"):
            ask()


def test_on_a_worker_a_task_ends_when_it_is_cancelled_or_forgotten(monkeypatch):
    tasks = {"mine": SimpleNamespace(state="executing"), "other": SimpleNamespace(state="cancelled")}
    monkeypatch.setattr(on_dask, "get_worker", lambda: SimpleNamespace(state=SimpleNamespace(tasks=tasks)))
    monkeypatch.setattr(on_dask, "thread_state", SimpleNamespace(key="mine"))

    def function(a, b, stopped):
        told = [a, b, stopped()]
        tasks["mine"].state = "cancelled"
        told.append(stopped())
        del tasks["mine"]
        return [*told, stopped()]

    assert on_dask.until_cancelled(function, 1, 2) == [1, 2, False, True, True]
    assert never() is False


# Ray


class Rays:
    """As much of Ray as a carrier needs; `ready` are those whose values are there."""

    class exceptions:
        RayTaskError = type("RayTaskError", (Exception,), {})
        WorkerCrashedError = type("WorkerCrashedError", (Exception,), {})
        ObjectLostError = type("ObjectLostError", (Exception,), {})
        RaySystemError = type("RaySystemError", (Exception,), {})

    def __init__(self, up=False, ready=()):
        self.up, self.begun, self.ready, self.cancelled, self.waits = up, 0, ready, [], []

    def is_initialized(self):
        return self.up

    def init(self):
        self.up, self.begun = True, self.begun + 1

    def put(self, value):
        return f"put {value}"

    def remote(self, function):
        def options(**given):
            return SimpleNamespace(remote=lambda *args: SimpleNamespace(value=function(*args), options=given))

        return SimpleNamespace(options=options)

    def wait(self, refs, num_returns, timeout):
        assert 0 < num_returns <= len(refs)  # as Ray says
        there = [ref for ref in refs if ref in self.ready][:num_returns]
        self.waits.append(0 if len(there) == num_returns else timeout)
        return there, [ref for ref in refs if ref not in there]

    def get(self, ref):
        if isinstance(ref, Exception):
            raise ref
        return ref

    def cancel(self, ref):
        self.cancelled.append(ref)


@pytest.fixture
def stand_in(monkeypatch):
    def made(remote_args=None, **options):
        ray = Rays(**options)
        monkeypatch.setitem(sys.modules, "ray", ray)
        return ray, RayCarrier(remote_args)

    return made


def test_a_ray_is_started_only_where_there_is_none(stand_in):
    assert stand_in(up=True)[0].begun == 0 and stand_in(up=False)[0].begun == 1


def test_calls_of_ray_have_the_options_of_its_backend(stand_in):
    for options in (None, {}, {"num_cpus": 2}):
        _, carrier = stand_in(options)
        made, solved = carrier.call(abs, -5, at="anywhere"), carrier.solve(lambda a, stopped: (a, stopped()), 5)
        assert made.value == 5 and solved.value == (5, False) and made.options == solved.options == (options or {})


def test_ray_has_values_but_no_homes(stand_in):
    _, carrier = stand_in()
    assert carrier.put(1) == "put 1" and carrier.put_all([1, 2], "anywhere") == ["put 1", "put 2"]
    for count in range(3):
        assert carrier.spread([1.0] * count) == carrier.homes(["ref"] * count) == [None] * count


def test_ray_gives_what_is_there_and_waits_only_if_nothing_is(stand_in):
    refs = ["a", "b", "c"]
    for count in range(4):
        for ready in itertools.combinations(refs, count):
            ray, carrier = stand_in(ready=ready)
            assert sorted(carrier.wait(refs, 9.0)) == sorted(ready) and ray.waits[0] == (0 if ready else 9.0)
            assert not any(ray.waits[1:])
    assert stand_in(ready=["a"])[1].wait(["a"], 9.0) == ["a"] and stand_in()[1].wait(["a"], 9.0) == []


def test_what_ray_has_lost_is_lost_and_an_error_of_the_function_is_its_own(stand_in):
    ray, carrier = stand_in()
    assert carrier.get("value") == "value"
    for kind in (ray.exceptions.WorkerCrashedError, ray.exceptions.ObjectLostError, ray.exceptions.RaySystemError):
        with pytest.raises(LostError, match="gone"):
            carrier.get(kind("gone"))
    for kind in (ray.exceptions.RayTaskError, ValueError):
        with pytest.raises(kind):
            carrier.get(kind("its own"))


def test_ray_cancels_all_that_is_dropped(stand_in):
    ray, carrier = stand_in()
    carrier.drop(["a", "b"])
    assert ray.cancelled == ["a", "b"]

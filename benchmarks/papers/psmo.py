"""D. Brugger: Parallel Support Vector Machines. WSI-2006-01, University of Tübingen.

Its CPU times are of one processor, an AMD Athlon MP 2000+ (1.67 GHz), with 256 MB of cache; LIBSVM there is 2.8. "Test
error" in its tables is the share of test rows that are right.
"""

from benchmarks.base import Line
from benchmarks.papers import Claim

TITLE = "PSMO: Parallel Support Vector Machines (Brugger, 2006)"
MACHINE = "its machine: AMD Athlon MP, 1.67 GHz"
_MINUTE, _HOUR = 60.0, 3600.0

# Table 1: LOQO inside on mnist-576-rbf-8vr, by (working set, processors): iterations, seconds
TABLE_1 = {
    (256, 1): (103, 64.85 * _MINUTE), (256, 2): (103, 51.23 * _MINUTE), (256, 4): (103, 29.53 * _MINUTE),
    (512, 1): (51, 65.48 * _MINUTE), (512, 2): (51, 51.93 * _MINUTE), (512, 4): (51, 30.05 * _MINUTE),
    (1024, 1): (24, 68.25 * _MINUTE), (1024, 2): (24, 53.46 * _MINUTE), (1024, 4): (24, 30.65 * _MINUTE),
}  # fmt: skip

# Tables 3, 5 (classification) and 7, 9 (regression): seconds of PSMO and LIBSVM, accuracy (%) or mean squared error of both
TABLES = {
    "svc": {
        "mnist-576": (59.13 * _MINUTE, 103.5 * _MINUTE, 99.82, 99.82),
        "mnist-784": (126.24 * _MINUTE, 153.90 * _MINUTE, 99.51, 99.51),
        "covtype": (31.12 * _HOUR, 11.71 * _HOUR, 96.35, 96.36),
        "kddcup99": (20.89 * _HOUR, 7.369 * _HOUR, 92.71, 92.71),
    },
    "nu_svc": {
        "mnist-576": (40.76 * _MINUTE, 98.55 * _MINUTE, 99.82, 99.82),
        "mnist-784": (87.05 * _MINUTE, 153.60 * _MINUTE, 99.51, 99.51),
        "covtype": (25.06 * _HOUR, 23.72 * _HOUR, 96.34, 96.33),
        "kddcup99": (43.89 * _HOUR, 23.35 * _HOUR, 92.71, 92.71),
    },
    "svr": {
        "kddcup98": (8.671 * _HOUR, 29.51 * _HOUR, 6.06e-4, 6.07e-4),
        "mv": (19.86 * _MINUTE, 20.0 * _MINUTE, 3.15e-5, 3.24e-5),
    },
    "nu_svr": {
        "kddcup98": (8.983 * _HOUR, 29.85 * _HOUR, 6.05e-4, 6.06e-4),
        "mv": (24.43 * _MINUTE, 82.60 * _MINUTE, 3.24e-5, 3.21e-5),
    },
}
NUMBER = {"svc": 3, "nu_svc": 5, "svr": 7, "nu_svr": 9}

# Tables 2, 4, 6, 8: its parameters, by the names of our sets; q / n_new of the working set
SETTINGS = {
    "svc": {
        "mnist8_poly": {"C": 10.0, "kernel": "poly", "degree": 7, "gamma": 1.0},
        "covtype_raw": {"C": 10.0, "gamma": 2e-5, "tol": 0.01},
        "kddcup99": {"C": 2.0, "gamma": 0.6, "tol": 0.01},
    },
    "nu_svc": {
        "mnist8_poly": {"nu": 0.006753, "kernel": "poly", "degree": 7, "gamma": 1.0},
        "covtype_raw": {"nu": 0.131544, "gamma": 2e-5, "tol": 0.01},
        "kddcup99": {"nu": 0.001164, "gamma": 0.6, "tol": 0.01},
    },
    "svr": {"mv_split": {"C": 32.0, "epsilon": 0.01, "gamma": 0.1084}},
    "nu_svr": {"mv_split": {"C": 32.0, "nu": 0.020947, "gamma": 0.1084}},
}
OURS = {"mnist-784": "mnist8_poly", "covtype": "covtype_raw", "kddcup99": "kddcup99", "mv": "mv_split"}
WHY = {
    "mnist-576": "its 576 features are not published with the paper",
    "kddcup98": "not at hand",
    "kddcup99": "the 10 % file: a tenth of its rows",
    "covtype": "another split of the same size",
    "mv": "another split of the same size; our features are one-hot, 14 against its 10",
}
FIGURES = {  # speed-ups are drawn, not printed: what the text says of them; formulation, set, processors up to which
    7: ("svc", "mnist", "superlinear up to 8 processors"),
    8: ("svc", "covtype, kddcup99", "superlinear up to 8; almost linear up to 4"),
    9: ("nu_svc", "mnist", "superlinear up to 4 (576 features) and 8"),
    10: ("nu_svc", "covtype, kddcup99", "superlinear up to 8"),
    11: ("svr", "kddcup98, mv", "below linear"),
    12: ("nu_svr", "kddcup98, mv", "below linear"),
}


def speedup_lines(figure: int, dataset: str, measured: dict[int, float], modelled: dict[int, float]) -> list[Line]:
    """For the experiment that runs one fit over several ranks: seconds by ranks, measured and by the cost model (marked
    so).

    The figures print no numbers, so what is published is the text's word on them.
    """
    says, one = f"published: {FIGURES[figure][2]}", measured[1]
    times = {n: (t, f"{n} ranks", says) for n, t in measured.items() if n > 1}
    for n, t in modelled.items():
        times.setdefault(n, (t, f"{n} ranks (cost model, not measured)", f"by the cost model; {says}"))
    return [Line(f"figure {figure}", f"{dataset}, {ranks}:", "", None, one / t, why) for t, ranks, why in times.values()]


CLAIMS = (
    Claim(
        "one processor: faster than LIBSVM on MNIST, slower on covtype and kddcup99 (C-SVC)",
        "Table 3",
        "psmo_table3.against_libsvm",
    ),
    Claim("the same for ν-SVC", "Table 5", "psmo_table5.against_libsvm"),
    Claim("as fast as LIBSVM on mv (ε-SVR)", "Table 7", "psmo_table7.against_libsvm"),
    Claim("3.4 times faster than LIBSVM on mv (ν-SVR)", "Table 9", "psmo_table9.against_libsvm"),
    Claim("interior point inside: the time does not depend on the size of the working set", "Table 1", "inner.constant"),
    Claim("linear or superlinear speed-ups on up to 8 processors", "figures 7 to 12", "mpi.speedups"),
)

"""T. Glasmachers, S. Qaadan: Speeding Up Budgeted Stochastic Gradient Descent SVM Training with Precomputed Golden
Section Search. 2018.
"""

from benchmarks.papers import Claim

TITLE = "Budgeted SGD with precomputed golden section search (Glasmachers, Qaadan, 2018)"

# Table 1: training rows, and the accuracy in per cent of the exact machine found by LIBSVM
TABLE_1 = {
    "susy": (4_500_000, 79.79), "skin": (183_793, 99.96), "ijcnn1": (49_990, 98.77), "a9a": (32_561, 84.82),
    "w8a": (17_188, 98.81), "phishing": (8_315, 97.55),
}  # fmt: skip

# Table 2: accuracy in per cent and its standard deviation over 5 runs, by (set, budget)
SEARCHES = ("gss-precise", "gss", "lookup-h", "lookup-wd")
TABLE_2 = {
    ("susy", 100): ((76.975, 1.372), (76.628, 2.030), (76.934, 1.426), (76.884, 1.261)),
    ("susy", 500): ((76.989, 3.109), (75.583, 3.0558), (75.581, 2.558), (75.570, 3.925)),
    ("skin", 100): ((99.621, 0.711), (99.629, 0.852), (99.621, 0.201), (99.617, 0.877)),
    ("skin", 200): ((99.868, 0.033), (99.877, 0.053), (99.855, 0.054), (99.754, 0.089)),
    ("ijcnn1", 100): ((97.141, 0.317), (96.807, 0.344), (97.132, 0.371), (97.130, 0.363)),
    ("ijcnn1", 500): ((98.138, 0.158), (98.055, 0.334), (98.113, 0.448), (98.070, 0.372)),
    ("a9a", 100): ((84.234, 0.883), (84.166, 0.701), (84.164, 0.988), (84.200, 0.798)),
    ("a9a", 500): ((84.280, 0.800), (83.739, 1.303), (83.836, 1.157), (83.949, 1.001)),
    ("w8a", 100): ((98.805, 0.026), (98.793, 0.027), (98.783, 0.045), (98.793, 0.039)),
    ("w8a", 500): ((98.809, 0.023), (98.781, 0.047), (98.799, 0.029), (98.807, 0.016)),
    ("phishing", 100): ((96.554, 0.158), (96.254, 0.301), (96.539, 0.242), (96.389, 0.371)),
    ("phishing", 500): ((97.555, 0.187), (97.517, 0.292), (97.518, 0.280), (97.525, 0.201)),
}

# Table 3: per cent of gss's training time saved by lookup-h and lookup-wd, by (set, budget)
SAVED_3 = {
    ("susy", 100): (43.911, 43.396), ("susy", 500): (39.201, 39.199), ("skin", 100): (20.515, 17.788),
    ("skin", 200): (14.173, 14.900), ("ijcnn1", 100): (28.091, 30.372), ("ijcnn1", 500): (30.569, 29.861),
    ("a9a", 100): (21.627, 18.452), ("a9a", 500): (22.334, 22.339), ("w8a", 100): (3.053, 5.649),
    ("w8a", 500): (7.483, 0.508), ("phishing", 100): (15.385, 13.946), ("phishing", 500): (7.563, 10.924),
}  # fmt: skip
# and at budget 100: merging frequency and equal decisions (per cent), factor of gss, factor of lookup-wd
DECISIONS_3 = {
    "susy": (43, 93.64, 1.01795, 1.00733), "skin": (16, 74.31, 1.00047, 1.00005), "ijcnn1": (17, 91.79, 1.02429, 1.00149),
    "a9a": (32, 92.54, 1.05064, 1.00402), "w8a": (6, 93.77, 1.00255, 1.00039), "phishing": (21, 96.96, 1.00055, 1.00008),
}  # fmt: skip

WHY = {  # by set
    "susy": "24,000 rows, several passes; the paper: 4,500,000 in one",
    "skin": "another split",
    "w8a": "39,799 rows; the paper: 17,188",
    "phishing": "8,844 rows; the paper: 8,315, another split",
}
WHY_EXACT = {"ijcnn1": "LIBSVM finds ours on this file, too (`exact`)"}
CLAIMS = (
    Claim("lookup loses no accuracy: differences are below one standard deviation", "Table 2", "budget_accuracy.within"),
    Claim("lookup saves up to 44 % of the training time and is never slower", "Table 3", "budget_speed.saved"),
    Claim(
        "decisions of lookup and golden section search mostly agree",
        "Table 3",
        "budget_decisions.agreement solver=paper-lookup-wd",
    ),
    Claim("lookup is more precise than golden section search on all six sets", "Table 3", "budget_decisions.more_precise"),
)

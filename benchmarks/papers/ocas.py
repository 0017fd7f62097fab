"""V. Franc, S. Sonnenburg: Optimized Cutting Plane Algorithm for Support Vector Machines. ICML 2008.

Its C multiplies the sum of the losses, as ours does (C_light). The C of Table 2 is not printed; Pegasos's steps are:
100/λ with λ = 1/(C·m), so C = steps / (100·m).
"""

from benchmarks.papers import Claim

TITLE = "OCAS: Optimized Cutting Plane Algorithm for Support Vector Machines (Franc, Sonnenburg, ICML 2008)"
MACHINE = "its machine: AMD Opteron, 2.4 GHz"
STOP = 1e-3  # (F − F_t)/(C·m), its rule with our C

# Table 1: examples and the share of them in training; Table 2's C by the steps of Pegasos
ROWS = {"astro": 42_895, "ccat": 699_840, "cov1": 470_620, "mnist": 53_900, "worm": 820_829, "artificial": 50_000}
STRENGTH = {"ccat": 1.0, "cov1": 10.0, "mnist": 50.0, "worm": 1.0, "artificial": 0.005}

# Table 2: objective, iterations, seconds by method and set; None: not converged or not attempted
TABLE_2 = {
    "svmlight": {"astro": (2.0939e3, 2972, 22), "ccat": (8.1235e4, 77429, 5295), "cov1": (2.5044e6, 1027310, 41531),
                 "mnist": (6.7118e5, 622391, 2719)},
    "svmperf": {"astro": (2.1180e3, 38, 2), "ccat": (8.1744e4, 228, 228), "cov1": (2.5063e6, 520, 152),
                "mnist": (6.7245e5, 1295, 228), "worm": (3.2224e4, 2029, 4436), "artificial": (1.3186e2, 709, 162)},
    "bmrm": {"astro": (2.1152e3, 42, 2), "ccat": (8.1682e4, 327, 248), "cov1": (2.5060e6, 678, 225),
             "mnist": (6.7250e5, 2318, 4327)},
    "ocas": {"astro": (2.1103e3, 21, 1), "ccat": (8.1462e4, 48, 25), "cov1": (2.5045e6, 80, 10),
             "mnist": (6.7158e5, 137, 10), "worm": (3.1920e4, 125, 258), "artificial": (1.3172e2, 76, 13)},
    "pegasos": {"astro": (2.1090e3, 2689e3, 4), "ccat": (8.1564e4, 70e6, 127), "cov1": (2.5060e6, 470e6, 460),
                "worm": (4.6212e4, 82e6, 213), "artificial": (1.3120e3, 25e3, 1)},
    "sgd": {"astro": (2.2377e3, 10, 1), "ccat": (8.2963e4, 10, 4), "cov1": (2.6490e6, 10, 1), "mnist": (1.3254e6, 10, 1),
            "worm": (2.1299e5, 10, 9), "artificial": (1.8097e2, 10, 2)},
}  # fmt: skip

# Table 3: area under the ROC curve in per cent (exact methods: their mean), best C, seconds for all C
AREA_3 = {"astro": 98.15, "ccat": 98.51, "cov1": 83.92, "mnist": 95.86, "worm": 99.45, "artificial": 86.38}
TABLE_3 = {
    "ocas": {"astro": (1, 4), "ccat": (1, 163), "cov1": (50, 51), "mnist": (10, 35), "worm": (0.1, 1438),
             "artificial": (0.005, 6740)},
    "svmperf": {"astro": (1, 13), "ccat": (1, 1750), "cov1": (5, 781), "mnist": (10, 887), "worm": (1, 22983),
                "artificial": (0.005, 24520)},
    "pegasos": {"astro": (1, 59), "ccat": (1, 2031), "cov1": (5, 731), "mnist": (5, 2125), "worm": (5, 1438),
                "artificial": (5, 201)},
    "sgd": {"astro": (0.5, 1), "ccat": (1, 20), "cov1": (1, 5), "mnist": (1, 3), "worm": (0.005, 69),
            "artificial": (0.005, 7)},
}  # fmt: skip
AREAS_3 = {
    "pegasos": {"astro": 98.15, "ccat": 98.51, "cov1": 83.89, "mnist": 95.84, "worm": 99.27, "artificial": 78.35},
    "sgd": {"astro": 98.13, "ccat": 98.52, "cov1": 83.88, "mnist": 95.71, "worm": 99.43, "artificial": 80.88},
}
GRIDS_3 = {
    "worm": (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0), "artificial": (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0),
    "cov1": (0.1, 0.5, 1.0, 5.0, 10.0), "mnist": (1.0, 5.0, 10.0, 50.0, 100.0),
}  # fmt: skip

# Table 4: 15 million rows of human splice sites, by CPUs: speed-up; seconds of line search, cut, output, total
TABLE_4 = {
    1: (1.0, 238, 270, 2476, 3087), 2: (1.77, 184, 155, 1300, 1742), 4: (3.09, 178, 80, 640, 998),
    8: (4.5, 139, 49, 397, 684), 16: (4.6, 117, 45, 410, 671),
}  # fmt: skip

OURS = {"cov1": "covtype", "mnist": "mnist_parity", "worm": "celegans", "artificial": "artificial"}  # its sets here
CLAIMS = (
    Claim("OCAS is the fastest of the accurate solvers on all sets", "Table 2", "ocas_table2.fastest"),
    Claim("SGD after 10 passes and Pegasos after 100/λ steps are often far from the optimum", "Table 2",
          "ocas_table2.stochastic"),
    Claim("λ = 0.1 works consistently well", "section 3", "linear_convergence.mix"),
    Claim("OCAS reaches the least objective everywhere, on half of the sets ahead of SGD from the start", "figure 2",
          "ocas_figure2.ahead"),
    Claim("effort grows linearly with the number of examples", "figure 3", "linear_scaling.exponents"),
    Claim("1.77 times faster on two CPUs", "Table 4", "linear_threads.speedups"),
)  # fmt: skip

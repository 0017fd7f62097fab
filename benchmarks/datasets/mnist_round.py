"""MNIST, round digits (0, 3, 6, 8, 9) against the others, divided by 255. C=1, γ=2⁻²¹·255² (DC-SVM, raw pixels)."""

from benchmarks.datasets import mnist8


class Dataset(mnist8.Dataset):
    kernel = {"C": 1.0, "gamma": 255.0**2 * 2.0**-21}
    positive = (0, 3, 6, 8, 9)

#!/usr/bin/python3
# SPDX-License-Identifier: BSL-1.0
"""The solution, in three dimensions its middle layer, and the residuals: picture.py solver.h5 OUT.png
Needs Debian's python3-h5py and python3-matplotlib."""
import sys

import h5py
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

if len(sys.argv) != 3:
    sys.exit("usage: picture.py solver.h5 OUT.png")
with h5py.File(sys.argv[1]) as file:
    solution, residuals = file["solution"][:], file["residuals"][:]
if solution.ndim == 3:
    solution = solution[solution.shape[0] // 2]
figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
figure.colorbar(left.imshow(solution, origin="lower", cmap="inferno"), ax=left)
left.set_title("temperature")
right.semilogy(residuals, color="#3b7dd8")
right.set(title="residual", xlabel="iteration")
right.grid(alpha=0.3)
figure.savefig(sys.argv[2])

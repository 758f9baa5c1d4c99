# SPDX-License-Identifier: BSL-1.0
# Spack 1.0 and later, in the source directory: spack repo add packaging/spack_repo/railpass;
# spack dev-build railpass@main. `spack install railpass` works once RAILPASS_ADDRESS in CMakeLists.txt is set.
import os
import re
from pathlib import Path

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Railpass(CMakePackage):
    """MPI collectives that learn the machine they run on."""

    # The published address of the repository that this recipe lies in; None while it is unpublished.
    git = re.search(r'set\(RAILPASS_ADDRESS "(.*)"\)',
                    (Path(__file__).resolve().parents[5] / "CMakeLists.txt").read_text())[1] or None

    license("BSL-1.0")

    version("main", branch="main")
    version("0.1.0", tag="v0.1.0")

    variant("boost_mpi", default=True, description="Boost.MPI's signatures")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("mpi")
    depends_on("boost@1.74:")
    depends_on("boost+mpi+serialization", when="+boost_mpi")
    depends_on("cli11", type="build")
    depends_on("eigen@3.3:3")
    depends_on("nlohmann-json@3.9:", type="build")
    depends_on("openssl@1.1.1:")
    depends_on("pkgconfig", type="build")
    depends_on("re2")
    depends_on("sqlite@3.36:")

    # Goes into the pages that railpass writes.
    resource(
        name="chart.js",
        url="https://cdn.jsdelivr.net/npm/chart.js@4.5.1/dist/chart.umd.min.js",
        sha256="48444a82d4edcb5bec0f1965faacdde18d9c17db3063d042abada2f705c9f54a",
        expand=False,
        placement="chart.js",
    )

    def cmake_args(self):
        # `spack dev-build` fetches nothing: CMake finds the Chart.js of the system then.
        chart_js = join_path(self.stage.source_path, "chart.js", "chart.umd.min.js")
        has_chart_js = os.path.exists(chart_js)
        return [
            self.define("RAILPASS_DEVELOPER", False),
            *([self.define("RAILPASS_CHART_JS", chart_js)] if has_chart_js else []),
            self.define("MPI_C_COMPILER", self.spec["mpi"].mpicc),
            self.define("MPI_CXX_COMPILER", self.spec["mpi"].mpicxx),
            self.define_from_variant("RAILPASS_WITH_BOOST_MPI", "boost_mpi"),
        ]

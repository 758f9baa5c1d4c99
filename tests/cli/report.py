# SPDX-License-Identifier: BSL-1.0
"""railpass report: a page of a comparison, a dump, a trace and a bench."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from pages import check_page  # noqa: E402
from program import ProgramTest, main  # noqa: E402


class Report(ProgramTest):
    def test_a_page_of_everything(self):
        compared, dump, bench = self.path("c.json"), self.path("d.json"), self.path("b.json")
        self.run_railpass("compare", "--repetitions", 6, "--json", compared, "--", "true")
        self.run_ranks(2, "bench", "--collectives", "broadcast", "--bytes", "1KiB,64KiB", "--budget",
                       "1s", "--arms", "native,tuned,binomial,pipeline", "--json", bench,
                       environment={"RAILPASS_STATS": dump, "RAILPASS_TRACE": self.path("t")})
        page = self.path("page.html")
        self.run_railpass("report", compared, dump, self.path("t.0"), bench, "-o", page)
        text = check_page(self, page)
        for words in ("The program, with and without railpass", "Tuning of the program's collectives"
                      ": d.json", "Call by call: t.0", "Measured side by side: b.json",
                      "Sources of this page", "<svg", "hold within the one launch"):
            self.assertIn(words, text)
        with open(compared, encoding="utf-8") as file:
            found = json.load(file)
        self.assertIn(found["host"], text)
        self.assertIn(found["compared_at"], text)
        self.assertLess(len(text), 2000000)

    def test_launches_are_told(self):
        row = {"collective": "broadcast", "bytes": 8, "median_s": 1e-3, "p90_s": 2e-3, "runs": 3}
        ratios = [0.9, 0.91, 0.92, 0.93, 0.94, 0.95]
        bench = {"format": "railpass bench", "version": 1, "environment": {
            "machine_id": {"num_hosts": 2, "cores_per_host": 4, "cpu_model": "A <CPU>",
                           "mpi_library": "Some MPI"},
            "measured_at": "2026-01-31T12:00:00Z", "num_ranks": 8, "ranks_per_node": 4,
            "notes": {}}, "learning": [], "results": [
                dict(row, arm="native", ratio_to_native=1.0),
                dict(row, arm="tuned", ratio_to_native=0.925, ratio_low=0.9, ratio_high=0.95,
                     launch_medians_s=[1e-3] * 6, launch_ratios=ratios)]}
        page = self.path("page.html")
        self.run_railpass("report", self.write("b.json", json.dumps(bench)), "-o", page)
        text = check_page(self, page)
        self.assertIn("over 6 launches, with 97 % confidence", text)
        self.assertIn("faster than the MPI library's own in 1 cases", text)
        self.assertIn("A &lt;CPU&gt;", text)
        tuned = bench["results"][1]
        for name in ("ratio_low", "ratio_high"):
            del tuned[name]
        tuned.update(launch_medians_s=[1e-3] * 3, launch_ratios=ratios[:3])
        self.run_railpass("report", self.write("b.json", json.dumps(bench)), "-o", page)
        text = check_page(self, page)
        self.assertIn("3 launches are too few for intervals", text)
        self.assertIn("no difference is shown in 1.", text)

    def test_refused(self):
        page = self.path("page.html")
        self.check_refused("report", says="files")
        self.check_refused("report", self.write("x", "{}"), says="--output")
        for text, says in {'{"format": "railpass profile"}': "railpass profile",
                           "hello": "JSON", '{"format": "railpass compare"}': "version"}.items():
            self.check_refused("report", self.write("x", text), "-o", page, status=1, says=says)
        self.assertFalse(os.path.exists(page))


if __name__ == "__main__":
    main()

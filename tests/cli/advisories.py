# SPDX-License-Identifier: BSL-1.0
"""Known faults of MPI libraries, railpass' own and a site's: doctor, bench and tuned programs."""
import json
import os

from support.program import MPIEXEC, ProgramTest, main


def fault(**fields):
    return {"effect": "is wrong", "link": "https://example.org/1", **fields}


class Advisories(ProgramTest):
    def site(self, *faults):
        path = self.write("site.json", json.dumps(
            {"format": "railpass advisories", "version": 1, "advisories": list(faults)}))
        return {"RAILPASS_ADVISORIES": path}

    def doctor(self, ranks=1, **options):
        found = self.start([MPIEXEC, "-n", str(ranks), os.environ["RAILPASS"], "doctor", "--json", "-"],
                           **options)
        return [c for c in json.loads(found.stdout) if c["check"] == "known fault"]

    def library(self):
        found = json.loads(self.start([os.environ["RAILPASS"], "doctor", "--json", "-"]).stdout)
        text = next(c["message"] for c in found if c["check"] == "mpi library")
        return next(name for name in ("Open MPI", "MPICH", "Intel") if name in text).replace("Intel", "Intel MPI")

    def test_doctor_lists_what_applies(self):
        library = self.library()
        others = {"Open MPI", "MPICH", "Intel MPI"} - {library}
        site = self.site(fault(library=library, collective="scan", from_ranks=2, avoid="native"),
                         fault(library=library, collective="exscan", from_ranks=3),
                         fault(library=library, collective="barrier", settings={"RAILPASS_X": "1"}),
                         *(fault(library=other, collective="all_to_all")
                           for other in others))
        listed = self.doctor(2, environment={**site, "RAILPASS_X": "1"})
        self.assertTrue(all(c["ok"] for c in listed))
        said = "\n".join(c["message"] for c in listed)
        self.assertIn(f"scan of {library}, 2 or more ranks: is wrong (https://example.org/1); "
                      "railpass does not use native", said)
        self.assertIn("set RAILPASS_X=1 (https://example.org/1), as is set here", said)
        self.assertNotIn("exscan", said)
        for other in others:
            self.assertNotIn(other, said)
        if library == "Open MPI":
            self.assertIn("https://github.com/open-mpi/ompi/issues/134", said)

    def test_a_wrong_file(self):
        path = self.write("site.json", '{"format": "railpass advisories", "version": 1, "advisories": '
                                       '[{"library": "MPICH", "effect": "x"}]}')
        wrong = [c for c in self.doctor(environment={"RAILPASS_ADVISORIES": path}) if not c["ok"]]
        self.assertEqual(len(wrong), 1)
        self.assertIn("site.json: ", wrong[0]["message"])
        self.assertIn("link", wrong[0]["message"])

    def test_bench_leaves_out_what_is_known(self):
        library = self.library()
        if library == "Intel MPI":
            self.skipTest("railpass cannot force its algorithms")
        site = self.site(fault(library=library, collective="broadcast", algorithms=["binomial"]))
        arguments = [MPIEXEC, "-n", "2", os.environ["RAILPASS"], "bench", "--collectives", "broadcast",
                     "--bytes", "1KiB", "--budget", "0.3s", "--arms"]
        said = self.start([*arguments, "native,native:all", "--all"], environment=site).stdout
        self.assertIn(f"Left out: native:binomial, broadcast of {library}, algorithm binomial: is wrong", said)
        self.assertEqual(said.count("native:binomial"), 1)
        said = self.start([*arguments, "native,native:binomial", "--all"], environment=site).stdout
        self.assertNotIn("Left out", said)
        self.assertIn("native:binomial", said)


main()

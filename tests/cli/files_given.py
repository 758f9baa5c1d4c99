# SPDX-License-Identifier: BSL-1.0
"""Files that verbs are given: recognised, or refused with a sentence that says why."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "support"))
from program import ProgramTest, main  # noqa: E402

OSU_LATENCY = """# OSU MPI Latency Test v7.2
# Size          Latency (us)
0                       1.10
1                       1.12
1024                    2.00
8192                    4.70
65536                  20.00
1048576               280.00
"""
OSU_BCAST = """# OSU MPI Broadcast Latency Test v7.2
# Size       Avg Latency(us)
1024                   30.12
65536                 300.00
"""
SAMPLES = {"format": "railpass samples", "version": 1,
           "machine_id": {"num_hosts": 2, "cores_per_host": 4, "cpu_model": "Imaginary",
                          "mpi_library": "Some MPI 1.0"},
           "sampled_at": "2026-01-31T12:00:00Z",
           "links": [{"link": "across_nodes", "bytes": n, "one_way_s": 2e-5 + n / 1e8}
                     for n in (1, 1024, 8192, 65536, 1 << 20)],
           "streams": [], "eager_limits_bytes": {"across_nodes": 65536}, "copies": [],
           "reductions": [], "collectives": []}


class Fit(ProgramTest):
    def test_samples(self):
        samples, profile = self.write("s.json", json.dumps(SAMPLES)), self.path("p.json")
        text = self.run_railpass("fit", samples, "-o", profile).stdout
        self.assertIn("across nodes", text)
        self.assertIn("100.0", text)  # MB/s
        found = self.json_of("predict", "--profile", profile, "--collective", "broadcast", "-p", 2,
                             "--bytes", "1MiB", "--arms", "binomial")
        self.assertAlmostEqual(found["predictions"][0]["predicted_s"], 2e-5 + (1 << 20) / 1e8,
                               delta=1e-3)

    def test_only_links_that_were_sampled_are_shown(self):
        for link, name, other in (("across_nodes", "across nodes", "same node"),
                                  ("same_node", "same node", "across nodes")):
            one = dict(SAMPLES, links=[dict(at, link=link) for at in SAMPLES["links"]],
                       eager_limits_bytes={link: 65536})
            profile = self.path("p.json")
            said = self.run_railpass("fit", self.write("s.json", json.dumps(one)), "-o",
                                     profile).stdout
            self.assertIn(other + ": not measured", said)
            self.assertIn(name + ": eager up to", said)
            self.assertNotIn("copy:", said)
            query = ("predict", "--profile", profile, "--collective", "broadcast", "-p", 4,
                     "--ranks-per-node")
            known, unknown = (1, 4) if link == "across_nodes" else (4, 1)
            self.assertIn("likely within", self.run_railpass(*query, known).stdout)
            said = self.run_railpass(*query, unknown).stdout
            self.assertNotIn("likely within", said)
            self.assertIn("never sampled", said)

    def test_json_is_the_profile(self):
        samples, profile = self.write("s.json", json.dumps(SAMPLES)), self.path("p.json")
        found = self.json_of("fit", samples, "-o", profile)
        with open(profile, encoding="utf-8") as file:
            self.assertEqual(json.load(file), found)
        self.assertEqual(found["machine_id"], SAMPLES["machine_id"])

    def test_output_of_osu_micro_benchmarks(self):
        latency, bcast = self.write("latency.txt", OSU_LATENCY), self.write("bcast.txt", OSU_BCAST)
        profile = self.path("p.json")
        text = self.run_railpass("fit", latency, bcast, "-p", 8, "-o", profile).stdout
        self.assertIn("2 times of the MPI library", text)
        found = self.json_of("predict", "--profile", profile, "--collective", "broadcast", "-p", 8,
                             "--bytes", "64KiB", "--arms", "native")
        self.assertAlmostEqual(found["predictions"][0]["predicted_s"], 300e-6)

    def test_a_bench_with_arms_of_another_version(self):
        data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data")
        done = self.run_railpass("fit", os.path.join(data, "samples_2_hosts_200mbit.json"),
                                 os.path.join(data, "bench_8_hosts_200mbit.json"), "-o", self.path("p.json"))
        self.assertRegex(done.stderr, r"left out \d+ times of arms that this railpass does not have, such as "
                         "scatter_allgather_recursive_doubling of broadcast")

    def test_a_profile_is_never_half_written(self):
        samples = self.write("s.json", json.dumps(SAMPLES))
        kept = self.write("p.json", "kept")
        broken = self.write("broken.json", json.dumps(SAMPLES)[:-20])
        self.check_refused("fit", samples, broken, "-o", kept, status=1, says="broken.json")
        with open(kept, encoding="utf-8") as file:
            self.assertEqual(file.read(), "kept")
        self.assertEqual(sorted(os.listdir(self.folder)), ["broken.json", "p.json", "s.json"])

    def test_files_of_different_machines(self):
        other = dict(SAMPLES, machine_id=dict(SAMPLES["machine_id"], cpu_model="Real"))
        self.check_refused("fit", self.write("a.json", json.dumps(SAMPLES)),
                           self.write("b.json", json.dumps(other)), "-o", self.path("p.json"),
                           status=1, says=("b.json", "Imaginary", "Real"))

    def test_wrong_use(self):
        samples = self.write("s.json", json.dumps(SAMPLES))
        self.check_refused("fit", "-o", self.path("p.json"))
        self.check_refused("fit", samples, says="--output")
        self.check_refused("fit", samples, "-o", self.path("p.json"), "--link", "wet",
                           says="--link")

    def test_nothing_to_fit(self):
        empty = dict(SAMPLES, links=[])
        self.check_refused("fit", self.write("e.json", json.dumps(empty)), "-o",
                           self.path("p.json"), status=1, says="fit")


class BadFiles(ProgramTest):
    """The same bad files for every verb that reads one."""

    def readers(self):
        return {"fit": lambda f: ("fit", f, "-o", self.path("out.json")),
                "stats": lambda f: ("stats", f),
                "predict": lambda f: ("predict", "--collective", "broadcast", "-p", 4,
                                      "--profile", f),
                "schedule": lambda f: ("schedule", "broadcast:binomial", "-p", 4, "--profile", f)}

    def formats(self):
        return {"fit": "railpass samples", "stats": "railpass statistics",
                "predict": "railpass profile", "schedule": "railpass profile"}

    def test_bad_files(self):
        binary = self.path("binary")
        with open(binary, "wb") as file:
            file.write(bytes(range(256)) * 40)
        for verb, command in self.readers().items():
            newer = json.dumps({"format": self.formats()[verb], "version": 99})
            files = [self.path("missing.json"), self.folder, binary, self.write("empty", ""),
                     self.write("text", "hello\n"), self.write("half", '{"format": "rail'),
                     self.write("list", "[1, 2]"), self.write("foreign", '{"a": 1}'),
                     self.write("newer", newer),
                     self.write("deep", "[" * 100000)]
            for file in files:
                with self.subTest(verb=verb, file=file):
                    self.check_refused(*command(file), status=1, says=file)

    def test_newer_versions_say_so(self):
        for verb, command in self.readers().items():
            newer = json.dumps({"format": self.formats()[verb], "version": 99})
            with self.subTest(verb=verb):
                self.check_refused(*command(self.write("newer", newer)), status=1,
                                   says=("newer", "99"))

    def test_unreadable_files(self):
        if os.geteuid() == 0:
            self.skipTest("root reads everything")
        secret = self.write("secret", "{}")
        os.chmod(secret, 0)
        for command in self.readers().values():
            self.check_refused(*command(secret), status=1, says="secret")


if __name__ == "__main__":
    main()

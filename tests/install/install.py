# SPDX-License-Identifier: BSL-1.0
"""Installs the build to a temporary prefix; builds and runs programs against that, with
find_package and with pkg-config; reads the manual and lets shells complete words.

    install.py CMAKE SOURCE_DIR BUILD_DIR MPI_COMPILER MPIEXEC facade|no-facade
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CMAKE, SOURCE, BUILD, MPICXX, MPIEXEC, FACADE = sys.argv[1:]
HERE = Path(__file__).resolve().parent


def run(*command, fails=False, **environment):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=300, env={**os.environ, **environment})
    if (done.returncode != 0) != fails:
        sys.exit(f"{shlex.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stderr if fails else done.stdout


def expect(text, output):
    if text not in output:
        sys.exit(f"expected '{text}' in:\n{output}")


def build(project, binary, prefix):
    version = run(prefix / "bin/railpass", "version").split()[1]
    run(CMAKE, "-S", project, "-B", binary, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DRAILPASS_VERSION={version}", f"-DMPI_CXX_COMPILER={MPICXX}", "-DCMAKE_BUILD_TYPE=Debug")
    run(CMAKE, "--build", binary)


def check_boundary(program):
    """The program needs librailpass, and of that only what is for programs."""
    needed = run("nm", "-D", "--undefined-only", "--with-symbol-versions", program)
    expect("@RAILPASS", needed)
    assert "RAILPASS_PRIVATE" not in needed, needed


def check_manual(prefix):
    """Every verb has a page that says what its --help says, and troff has no complaint."""
    railpass, pages = prefix / "bin/railpass", prefix / "share/man/man1"
    listed = run(railpass, "--help").split("Subcommands:\n")[1].split("\n\n")[0]
    verbs = [line.split()[0] for line in listed.splitlines() if line[2] != " "]
    names = {"railpass.1", *(f"railpass-{verb}.1" for verb in verbs)}
    assert {page.name for page in pages.iterdir()} == names, list(pages.iterdir())
    for verb in verbs:
        page = (pages / f"railpass-{verb}.1").read_text().replace("\\-", "-").replace("\\e", "\\")
        for line in run(railpass, verb, "--help").splitlines():
            if line.startswith("  -"):
                expect(line.split()[0], page)
    expect("/railpass.conf\n", (pages / "railpass.1").read_text())
    if shutil.which("groff"):
        for page in pages.iterdir():
            assert not run("sh", "-c", f"groff -man -Tutf8 -ww {page} 2>&1 >/dev/null"), page


def check_completion(prefix):
    bash = prefix / "share/bash-completion/completions/railpass"
    zsh = prefix / "share/zsh/site-functions/_railpass"
    for words, completed in {"kn": "knowledge", "help ver": "verify", "knowledge exp": "export",
                             "knowledge show --col": "--collective", "fit --li": "--link",
                             "run x": "", "manu": ""}.items():
        words = shlex.join(["railpass", *words.split()])
        found = run("bash", "-c", f"source {bash}; COMP_WORDS=({words}); "
                    "COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _railpass; echo \"${COMPREPLY[*]}\"")
        assert found.strip() == completed, (words, found)
        if shutil.which("zsh"):
            found = run("zsh", "-f", "-c", 'compadd() { shift; print -- " $@ " }; _files() { }; '
                        f"words=({words}); CURRENT=$#words; PREFIX=$words[-1]; source {zsh}")
            assert not completed or f" {completed} " in found, (words, found)


def check_module(prefix):
    """Loading the module, where there are modules, makes this prefix's program the first one."""
    if shutil.which("modulecmd"):
        said = run("modulecmd", "bash", "load", "railpass", MODULEPATH=str(prefix / "share/modules"))
        found = run("bash", "-c", f"{said}\ncommand -v railpass; echo $CMAKE_PREFIX_PATH; "
                    "echo $LD_LIBRARY_PATH; echo $PKG_CONFIG_PATH").splitlines()
        assert found[:2] == [str(prefix / "bin/railpass"), str(prefix)], (said, found)
        assert next(Path(found[2].split(":")[0]).glob("librailpass.so"), None), found
        assert (Path(found[3].split(":")[0]) / "railpass.pc").exists(), found


def check_pkg_config(work, prefix):
    """Programs are built with the flags alone, and headers of their own that have the names of railpass'
    stay theirs."""
    (work / "own").mkdir()
    for name in "options.hpp", "reduce.hpp":
        (work / "own" / name).write_text("constexpr bool mine = true;\n")
    pkgconfig = str(next(prefix.rglob("railpass.pc")).parent)

    def build_with(package, source, program, *more):
        flags = run("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=pkgconfig).split()
        run(MPICXX, "-std=c++20", source, "-o", work / program, *flags, *more)
        return run(MPIEXEC, "-n", "2", work / program)

    expect("2 ranks right", build_with("railpass", HERE / "mpi_signatures.cpp", "by_pkg_config"))
    build_with("railpass", HERE / "own_headers.cpp", "own_headers", f"-I{work / 'own'}")
    if FACADE == "facade":
        expect("sum 2", build_with("railpass_boost_mpi", Path(SOURCE) / "examples/broadcast/broadcast.cpp",
                                   "facade_by_pkg_config"))


def check_other_mpi_is_refused(work, prefix):
    """find_package says in a sentence that it is of another MPI, where there is another one."""
    other, name = next(((compiler, name) for name, compiler in
                        (("openmpi", "mpicxx.openmpi"), ("mpich", "mpicxx.mpich"))
                        if shutil.which(compiler) and
                        os.path.realpath(shutil.which(compiler)) != os.path.realpath(MPICXX)),
                       (None, None))
    if other:
        said = run(CMAKE, "-S", HERE, "-B", work / "other_mpi", "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={prefix}", f"-DMPI_CXX_COMPILER={other}", fails=True)
        expect(f"project uses {name}, that of", " ".join(said.split()))


# What users configure is there and lacks what developers need.
for preset in "install", "install-mpich", "install-intelmpi":
    expect('RAILPASS_DEVELOPER="OFF"', run(CMAKE, "-S", SOURCE, "-N", "--preset", preset))

with tempfile.TemporaryDirectory() as temporary:
    prefix, work = Path(temporary) / "prefix", Path(temporary)
    run(CMAKE, "--install", BUILD, "--prefix", prefix)

    build(HERE, work / "projects", prefix)
    expect("2 ranks right", run(MPIEXEC, "-n", "2", work / "projects/mpi_signatures"))
    check_boundary(work / "projects/mpi_signatures")
    expect("binomial found", run(work / "projects/models_alone"))
    if FACADE == "facade":
        build(Path(SOURCE) / "examples/broadcast", work / "example", prefix)
        expect("sum 2", run(MPIEXEC, "-n", "2", work / "example/broadcast"))
        check_boundary(work / "example/broadcast")

    check_pkg_config(work, prefix)
    check_other_mpi_is_refused(work, prefix)

    # What a site says reaches programs, and what is wrong with it is said once.
    site, dump = work / "railpass.conf", work / "dump.json"
    site.write_text(f"stats = {dump}\npolcy = pass\n")
    said = run("sh", "-c", f"{MPIEXEC} -n 2 {work}/projects/mpi_signatures 2>&1", RAILPASS_CONF=str(site))
    assert said.count(f"{site}: line 2: polcy: there is no setting 'polcy'") == 1, said
    expect("did you mean 'policy'?", said)
    expect('"contexts"', dump.read_text())

    check_manual(prefix)
    check_completion(prefix)
    check_module(prefix)
    documents = prefix / "share/doc/railpass"
    assert (documents / "LICENSE").read_text() == (Path(SOURCE) / "LICENSE").read_text()
    run(sys.executable, Path(SOURCE) / "tests/docs/links.py", documents)

    # Beside a railpass of another MPI.
    run(CMAKE, "--install", BUILD, "--component", "preload", "--prefix", work / "other")
    assert [path.parent.parent.name for path in (work / "other").rglob("librailpass_preload.so")
            if next(path.parent.glob("librailpass.so.*"), None)] == ["railpass"]

    expect("broadcast", run(prefix / "bin/railpass", "algorithms"))
    expect("Chosen for all_reduce", run(prefix / "bin/railpass", "demo", "-n", "2", "--repetitions", "1",
                                        "--steps", "500", RAILPASS_KNOWLEDGE="off"))
    expect("librailpass_preload.so",
           run(prefix / "bin/railpass", "run", "-n", "2", "sh", "-c", "echo $LD_PRELOAD"))

    run(CMAKE, f"-DBUILD={BUILD}", "-P", Path(SOURCE) / "cmake/uninstall.cmake")
    for place in prefix, work / "other":
        left = [path for path in place.rglob("*") if not path.is_dir() or path.name == "railpass"]
        assert not left, left

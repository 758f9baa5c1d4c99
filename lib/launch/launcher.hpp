// SPDX-License-Identifier: BSL-1.0
//
// The launcher that starts the ranks of a program, and the options that give ranks the preload
// library.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railpass::internal::launch {

/// The MPI library that a preload library is built for. `standard` is the ABI of MPI 5.0
/// (libmpi_abi.so) of any MPI library.
enum class mpi_family { unknown, open_mpi, mpich, intel, standard };
enum class launcher_kind { unknown, open_mpi, hydra, intel, slurm };

/// The name on the command line and of the folder of other MPI libraries' preload libraries:
/// "openmpi", "mpich", "intelmpi", "mpi_abi".
std::string_view name_of(mpi_family family);
/// In sentences: "Open MPI".
std::string full_name(mpi_family family);
/// Throws usage_error.
mpi_family parse_family(std::string_view option, std::string_view name);
mpi_family family_of_build();

/// Throws error if this host has no such program, by its path or in PATH.
void require_program(const std::string& program);

/// The MPI library that an executable was linked with, as the dynamic linker says; unknown for
/// scripts and for what is not there.
mpi_family family_of_program(const std::string& program);

/// Whose launcher this is: of programs that are named like one, by what they say of themselves.
launcher_kind kind_of_launcher(const std::string& program);
/// Programs of that family are started by it.
/// Like kind_of_launcher(), for what the user has named as a launcher: scripts are asked, too.
launcher_kind kind_of_named_launcher(const std::string& program);
bool can_start(launcher_kind kind, mpi_family family);
/// The family most programs of the launcher have; unknown for srun.
mpi_family usual_family(launcher_kind kind);
/// A launcher of the family in PATH; the launcher of the build comes first. Throws error if PATH
/// has none.
std::string find_launcher(mpi_family family);

/// A launcher, and the program's MPI library.
struct starter {
  launcher_kind kind = launcher_kind::unknown;
  mpi_family family = mpi_family::unknown;  ///< of the program
  std::vector<std::string> command{};       ///< the launcher, and options of the user's
};

/// `launcher`: the command that --launcher names; `mpi`: the family that --mpi names. If empty, the
/// mpiexec of the program's MPI, and the MPI that the program is linked with. Throws usage_error,
/// or error if one does not start the other.
starter find_starter(const std::string& launcher, const std::string& mpi,
                     const std::string& program);

/// Options with which ranks that wait give way where a host of the job has fewer cores than ranks;
/// none where hosts have enough, or where that is not known.
/// `words`: those behind the launcher's name, which may go on with the program; `ranks`: unless
/// they say it.
std::vector<std::string> crowd_options(launcher_kind kind, std::span<const std::string> words,
                                       std::optional<int> ranks = {});

/// The command line that starts a program on `ranks` ranks, with crowd_options and with more
/// options of the launcher.
std::vector<std::string> command_of(const starter& by, int ranks,
                                    const std::vector<std::string>& options,
                                    const std::vector<std::string>& program);

/// Options of the launcher that give the ranks, on all hosts, this process' RAILPASS variables and
/// these.
std::vector<std::string> passing_options(
    launcher_kind kind, std::span<const std::pair<std::string, std::string>> variables);

/// The value of LD_PRELOAD: the library, then what the user preloads. Before them stands the
/// runtime of AddressSanitizer if a word is a program that is linked with it.
std::string preload_value(const std::string& library, std::span<const std::string> words);
/// passing_options with LD_PRELOAD, and with RAILPASS_ALL_RANKS unless it is set, or `words`, the
/// launcher's own options and what it starts, may be several programs.
std::vector<std::string> preloading_options(launcher_kind kind, const std::string& value,
                                            std::span<const std::string> words);

/// For /bin/sh: to start what is found and to show what is started.
std::string quoted(const std::string& word);
std::string quoted(const std::vector<std::string>& words);

}  // namespace railpass::internal::launch

// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/own_algorithms.hpp"

#include "lib/files/files.hpp"
#include "lib/files/input.hpp"
#include "lib/runtime/known_faults.hpp"
#include "lib/runtime/settings_in_force.hpp"
#include "railpass/base/error.hpp"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>

namespace railpass::internal::measure {
namespace {

struct info {
  info() { MPI_Info_create(&handle); }
  ~info() { MPI_Info_free(&handle); }
  info(const info&) = delete;
  info& operator=(const info&) = delete;
  MPI_Info handle = MPI_INFO_NULL;
};

std::vector<std::pair<int, std::string>> values_of(MPI_T_enum enumeration) {
  std::vector<std::pair<int, std::string>> values;
  if (enumeration == MPI_T_ENUM_NULL) return values;
  int number = 0, length = 0;
  if (MPI_T_enum_get_info(enumeration, &number, nullptr, &length) != MPI_SUCCESS) return values;
  for (int i = 0; i < number; ++i) {
    char name[256] = "";
    int value = 0, most = sizeof name;
    if (MPI_T_enum_get_item(enumeration, i, &value, name, &most) == MPI_SUCCESS)
      values.emplace_back(value, name);
  }
  return values;
}

struct variable_info {
  int index = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  int scope = 0;
  libraries::algorithm_variable says{};
};

variable_info info_of(const std::string& name) {
  variable_info info;
  if (MPI_T_cvar_get_index(name.c_str(), &info.index) != MPI_SUCCESS)
    throw error("the MPI library has no control variable " + name);
  std::vector<char> text(1 << 14);
  int name_length = 0, length = int(text.size()), verbosity = 0, binding = 0;
  MPI_T_enum enumeration = MPI_T_ENUM_NULL;
  if (MPI_T_cvar_get_info(info.index, nullptr, &name_length, &verbosity, &info.type, &enumeration,
                          text.data(), &length, &binding, &info.scope) != MPI_SUCCESS)
    throw error("the MPI library does not describe its control variable " + name);
  info.says = {text.data(), values_of(enumeration)};
  return info;
}

// The only arm, if it is one of the MPI library's algorithms.
std::optional<std::string> only_algorithm(const std::vector<std::string>& arms) {
  if (arms.size() != 1 || !is_own_algorithm(arms.front())) return {};
  const std::string name = libraries::parse_own_arm(arms.front()).name;
  return name == "all" ? std::nullopt : std::optional(name);
}

std::string content_of_mpi_library(const libraries::mpi_library& library) {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;
  return library.reads_file ? files::read_text(file_of_mpi_library(), most_bytes) : "";
}

}  // namespace

std::string file_of_mpi_library() {
  Dl_info self{};
  if (!dladdr(reinterpret_cast<const void*>(&PMPI_Init), &self) || !self.dli_fname)
    throw error("the MPI library's file was not found");
  return self.dli_fname;
}

std::string mark_of_mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  PMPI_Get_library_version(text.data(), &length);
  return files::this_machine(1, std::string(text.data(), std::size_t(length))).mpi_library;
}

tools_interface::tools_interface() {
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
}

tools_interface::~tools_interface() { MPI_T_finalize(); }

control_variable::control_variable(const std::string& name) : name_(name) {
  const variable_info info = info_of(name);
  if (info.type != MPI_INT)
    throw error("control variable " + name + " of the MPI library: expected an integer");
  if (info.scope == MPI_T_SCOPE_CONSTANT || info.scope == MPI_T_SCOPE_READONLY)
    throw error("control variable " + name + " of the MPI library cannot be written");
  int count = 0;
  if (MPI_T_cvar_handle_alloc(info.index, nullptr, &handle_, &count) != MPI_SUCCESS || count != 1 ||
      MPI_T_cvar_read(handle_, &initial_) != MPI_SUCCESS)
    throw error("control variable " + name + " of the MPI library: expected one number");
}

control_variable::~control_variable() { MPI_T_cvar_handle_free(&handle_); }

void control_variable::write(int value) {
  if (MPI_T_cvar_write(handle_, &value) != MPI_SUCCESS)
    throw error("control variable " + name_ + " of the MPI library does not take " +
                std::to_string(value));
}

void own_algorithms::prepare(const std::vector<std::string>& arms,
                             const std::vector<collective>& ops) {
  const libraries::mpi_library* const library = libraries::find(machine_marks(1).mpi_library);
  if (!library) return;  // the constructor says so, on all ranks
  for (const auto& [name, value] : library->environment) setenv(name, value, 0);
  if (const auto algorithm = only_algorithm(arms); algorithm && library->setting_of)
    for (const collective op : ops) setenv(library->setting_of(op).c_str(), algorithm->c_str(), 1);
}

own_algorithms::own_algorithms(const job& j)
    : library_(libraries::find(machine_marks(1).mpi_library)) {
  if (!library_)
    throw error("native:ALGORITHM: railpass cannot force algorithms of this MPI library ('" +
                machine_marks(1).mpi_library + "')");
  for (const collective op : all_collectives) {
    found_[op];
    const auto try_with = [&](const std::string& name, const auto& add) {
      if (!name.empty()) try {
          add(name);
        } catch (const error&) {
          // Not in this version of the library, or not to be written: the collective has no such
          // arm.
        }
    };
    try_with(library_->algorithm_variable_of(op), [&](const std::string& name) {
      if (library_->read != libraries::variables_read::at_start) variables_.try_emplace(op, name);
      described_[op] = info_of(name).says;
    });
    try_with(library_->segment_variable_of(op),
             [&](const std::string& name) { segment_variables_.try_emplace(op, name); });
  }
  std::string list, problem;
  if (j.rank == 0) try {
      list = list_on_this_rank(j);
    } catch (const error& wrong) {
      problem = wrong.what();
    }
  broadcast_text(problem);
  if (!problem.empty()) throw error(problem);
  broadcast_text(list);
  std::istringstream lines(list);
  int op = 0;
  std::string fault;
  for (own_algorithm a; lines >> op >> a.number >> a.name && std::getline(lines, fault);) {
    a.collective = name_of(collective(op));
    if (!described_.contains(collective(op))) continue;
    found_[collective(op)].push_back(a);
    if (!fault.empty()) left_out_[{collective(op), a.name}] = fault.substr(1);
  }
}

// A line for each algorithm: its known fault follows.
std::string own_algorithms::list_on_this_rank(const job& j) const {
  const std::string content = content_of_mpi_library(*library_);
  const std::vector<knowledge::advisory> faults = known_faults(
      read_settings(environ).values.advisories, machine_marks(j.num_nodes()).mpi_library);
  const auto fault_of = [&](collective op, const std::string& name) -> std::string {
    for (const knowledge::advisory& a : faults)
      if (knowledge::names_algorithm(
              a, op, name,
              {.num_ranks = j.num_ranks, .num_hosts = j.num_nodes(), .commutative = true}))
        return " " + text_of(a);
    return {};
  };
  std::string list;
  for (const auto& [op, variable] : described_)
    for (const own_algorithm& a : library_->algorithms(op, variable, content))
      list += std::to_string(int(op)) + ' ' + std::to_string(a.number) + ' ' + a.name +
              fault_of(op, a.name) + '\n';
  return list;
}

std::vector<own_algorithm> own_algorithms::named(collective op,
                                                 const libraries::own_arm& arm) const {
  std::vector<own_algorithm> all;
  for (const own_algorithm& a : of(op))
    if (arm.name == "all" ? !left_out_.contains({op, a.name}) : arm.name == a.name)
      all.push_back(a);
  return all;
}

bool own_algorithms::can_force(const std::vector<std::string>& arms) const {
  return library_->read != libraries::variables_read::at_start || only_algorithm(arms);
}

MPI_Comm own_algorithms::communicator(collective op, const own_algorithm& algorithm,
                                      std::int64_t segment_bytes) const {
  std::unique_ptr<forced> now;
  if (library_->read == libraries::variables_read::with_communicator)
    now = std::make_unique<forced>(*this, op, algorithm, segment_bytes);
  MPI_Comm comm = MPI_COMM_NULL;
  const auto& [key, value] = library_->communicator_info;
  const info wish;
  if (key) MPI_Info_set(wish.handle, key, value);
  MPI_Comm_dup_with_info(MPI_COMM_WORLD, wish.handle, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  return comm;
}

std::unique_ptr<own_algorithms::forced> own_algorithms::during_call(
    collective op, const own_algorithm& algorithm, std::int64_t segment_bytes) const {
  if (library_->read != libraries::variables_read::in_calls) return nullptr;
  return std::make_unique<forced>(*this, op, algorithm, segment_bytes);
}

own_algorithms::forced::forced(const own_algorithms& all, collective op,
                               const own_algorithm& algorithm, std::int64_t segment_bytes)
    : algorithm_(all.variables_.at(op)), segment_(nullptr) {
  if (segment_bytes > 0) {
    if (!all.has_segments(op) || segment_bytes > std::numeric_limits<int>::max())
      throw error("the MPI library does not segment " + std::string(name_of(op)));
    segment_ = &all.segment_variables_.at(op);
    segment_->write(int(segment_bytes));
  }
  algorithm_.write(int(algorithm.number));
}

own_algorithms::forced::~forced() {
  algorithm_.restore();
  if (segment_) segment_->restore();
}

}  // namespace railpass::internal::measure

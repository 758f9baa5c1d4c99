// SPDX-License-Identifier: BSL-1.0
#include "lib/measure/own_algorithms.hpp"

#include "lib/files/input.hpp"
#include "lib/runtime/known_faults.hpp"
#include "lib/runtime/settings_in_force.hpp"
#include "railpass/base/error.hpp"

#include <cstdlib>
#include <dlfcn.h>
#include <limits>
#include <memory>
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

tools_interface::tools_interface() {
  int provided = 0;
  MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
}

tools_interface::~tools_interface() { MPI_T_finalize(); }

control_variable::control_variable(const std::string& name) : name_(name) {
  int index = 0;
  if (MPI_T_cvar_get_index(name.c_str(), &index) != MPI_SUCCESS)
    throw error("the MPI library has no control variable " + name);
  std::vector<char> text(1 << 14);
  int name_length = 0, length = int(text.size()), verbosity = 0, binding = 0, scope = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_T_enum enumeration = MPI_T_ENUM_NULL;
  if (MPI_T_cvar_get_info(index, nullptr, &name_length, &verbosity, &type, &enumeration,
                          text.data(), &length, &binding, &scope) != MPI_SUCCESS ||
      type != MPI_INT)
    throw error("control variable " + name + " of the MPI library: expected an integer");
  if (scope == MPI_T_SCOPE_CONSTANT || scope == MPI_T_SCOPE_READONLY)
    throw error("control variable " + name + " of the MPI library cannot be written");
  description_ = text.data();
  values_ = values_of(enumeration);
  int count = 0;
  if (MPI_T_cvar_handle_alloc(index, nullptr, &handle_, &count) != MPI_SUCCESS || count != 1 ||
      MPI_T_cvar_read(handle_, &initial_) != MPI_SUCCESS)
    throw error("control variable " + name + " of the MPI library: expected one number");
}

control_variable::~control_variable() { MPI_T_cvar_handle_free(&handle_); }

void control_variable::write(int value) {
  if (MPI_T_cvar_write(handle_, &value) != MPI_SUCCESS)
    throw error("control variable " + name_ + " of the MPI library does not take " +
                std::to_string(value));
}

void own_algorithms::prepare() {
  const libraries::mpi_library* const library = libraries::find(machine_marks(1).mpi_library);
  if (!library) return;  // the constructor says so, on all ranks
  for (const auto& [name, value] : library->environment) setenv(name, value, 0);
}

own_algorithms::own_algorithms(const job& j)
    : library_(libraries::find(machine_marks(1).mpi_library)) {
  if (!library_)
    throw error("native:ALGORITHM: railpass cannot force algorithms of this MPI library ('" +
                machine_marks(1).mpi_library + "')");
  for (const collective op : all_collectives) {
    found_[op];
    const auto add = [&](auto& to, const std::string& name) {
      if (!name.empty()) try {
          to.try_emplace(op, name);
        } catch (const error&) {
          // Not in this version of the library, or not to be written: the collective has no such
          // arm.
        }
    };
    add(variables_, library_->algorithm_variable_of(op));
    add(segment_variables_, library_->segment_variable_of(op));
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
    if (!variables_.contains(collective(op))) continue;
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
  for (const auto& [op, variable] : variables_)
    for (const own_algorithm& a :
         library_->algorithms(op, {variable.description(), variable.values()}, content))
      list += std::to_string(int(op)) + ' ' + std::to_string(a.number) + ' ' + a.name +
              fault_of(op, a.name) + '\n';
  return list;
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
  if (library_->read == libraries::variables_read::with_communicator) return nullptr;
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

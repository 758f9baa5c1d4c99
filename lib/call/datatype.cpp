// SPDX-License-Identifier: BSL-1.0
#include "lib/call/datatype.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

namespace railpass::internal {

namespace {

// Types with more numbers in their description count as not packed: programs may make one for each
// call, and looking at it must cost less than making it did.
constexpr std::int64_t longest_description = 4096;

// Two threads may meet a datatype for the first time at once. Setting an attribute again would
// delete what a third one is reading.
std::mutex inspecting;

int delete_layout(MPI_Datatype, int, void* value, void*) {
  delete static_cast<datatype_layout*>(value);
  return MPI_SUCCESS;
}

bool names_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL ||
         combiner == MPI_COMBINER_F90_INTEGER || combiner == MPI_COMBINER_F90_COMPLEX;
}

// How much MPI has to say of how a type was made.
struct envelope {
  int combiner = MPI_COMBINER_NAMED;
  std::int64_t ints = 0, addresses = 0, counts = 0, types = 0;

  int read(MPI_Datatype type) {
#if MPI_VERSION >= 4  // the other form refuses types that were made by large-count forms
    MPI_Count num_ints = 0, num_addresses = 0, num_counts = 0, num_types = 0;
    const int code = PMPI_Type_get_envelope_c(type, &num_ints, &num_addresses, &num_counts,
                                              &num_types, &combiner);
    counts = num_counts;
#else
    int num_ints = 0, num_addresses = 0, num_types = 0;
    const int code = PMPI_Type_get_envelope(type, &num_ints, &num_addresses, &num_types, &combiner);
#endif
    ints = num_ints;
    addresses = num_addresses;
    types = num_types;
    return code;
  }
};

// What MPI says of how a type was made.
struct description {
  int combiner = MPI_COMBINER_NAMED;
  bool is_large = false;  // by a large-count form
  // Ints, then addresses, then counts. A large-count form has counts in place of the other two, in
  // the same order; but one of a subarray has the order of the dimensions before their lengths.
  std::vector<std::int64_t> numbers;
  std::vector<MPI_Datatype> types;

  description() = default;
  description(const description&) = delete;
  description& operator=(const description&) = delete;
  // MPI lends predefined types; what others it returns are the caller's.
  ~description() {
    for (MPI_Datatype& type : types)
      if (!is_predefined(type)) PMPI_Type_free(&type);
  }

  // Reads no more than the combiner if there are more than `longest` numbers: it is unknown then.
  int read(MPI_Datatype type, std::int64_t longest) {
    envelope e;
    if (const int failure = e.read(type)) return failure;
    combiner = e.combiner;
    if (names_predefined(combiner)) return MPI_SUCCESS;
    if (e.ints + e.addresses + e.counts > longest) return combiner = unknown_combiner, MPI_SUCCESS;
    is_large = e.counts > 0;
    std::vector<int> ints(std::size_t(e.ints));
    std::vector<MPI_Aint> addresses(std::size_t(e.addresses));
    std::vector<MPI_Count> counts(std::size_t(e.counts));
    std::vector<MPI_Datatype> made(std::size_t(e.types), MPI_DATATYPE_NULL);
#if MPI_VERSION >= 4
    const int code =
        PMPI_Type_get_contents_c(type, e.ints, e.addresses, e.counts, e.types, ints.data(),
                                 addresses.data(), counts.data(), made.data());
#else
    const int code = PMPI_Type_get_contents(type, int(e.ints), int(e.addresses), int(e.types),
                                            ints.data(), addresses.data(), made.data());
#endif
    if (code != MPI_SUCCESS) return code;
    types.swap(made);
    numbers.assign(ints.begin(), ints.end());
    numbers.insert(numbers.end(), addresses.begin(), addresses.end());
    numbers.insert(numbers.end(), counts.begin(), counts.end());
    return MPI_SUCCESS;
  }

  std::int64_t number(std::int64_t i) const { return numbers[std::size_t(i)]; }

  static constexpr int unknown_combiner = -1;
};

int measure(MPI_Datatype type, datatype_layout& layout) {
  MPI_Count size = 0, lower = 0, extent = 0, true_lower = 0, true_extent = 0;
  if (const int failure = PMPI_Type_size_x(type, &size)) return failure;
  if (const int failure = PMPI_Type_get_extent_x(type, &lower, &extent)) return failure;
  if (const int failure = PMPI_Type_get_true_extent_x(type, &true_lower, &true_extent))
    return failure;
  layout = {.size = size,
            .extent = extent,
            .true_lower_bound = true_lower,
            .true_extent = true_extent,
            .packed = false};
  return MPI_SUCCESS;
}

int is_one_run(MPI_Datatype type, const datatype_layout& layout, bool& one);

// Elements of a type, one block behind the other.
class run {
 public:
  // Adds `count` elements that begin `at` bytes from the type's address.
  int add(std::int64_t at, std::int64_t count, MPI_Datatype type) {
    if (count == 0 || !unbroken_) return MPI_SUCCESS;
    if (type != last_) {
      if (const int failure = measure(type, layout_)) return failure;
      if (const int failure = is_one_run(type, layout_, last_is_run_)) return failure;
      last_ = type;
    }
    unbroken_ = last_is_run_ && at == end_ && (count == 1 || layout_.extent == layout_.size);
    end_ += count * layout_.size;
    return MPI_SUCCESS;
  }
  // The same with the distance counted in elements.
  int add_by_elements(std::int64_t at, std::int64_t count, MPI_Datatype type) {
    MPI_Count lower = 0, extent = 0;
    if (const int failure = PMPI_Type_get_extent_x(type, &lower, &extent)) return failure;
    return add(at * extent, count, type);
  }
  bool unbroken() const { return unbroken_; }

 private:
  bool unbroken_ = true;
  std::int64_t end_ = 0;
  MPI_Datatype last_ = MPI_DATATYPE_NULL;
  datatype_layout layout_;
  bool last_is_run_ = false;
};

// Whether an element's bytes lie in memory without gaps in the order in which they are packed,
// whatever its extent. That size and true extent are equal does not suffice: a type map may visit
// its bytes in another order. So it is followed how the type was made.
int is_one_run(MPI_Datatype type, const datatype_layout& layout, bool& one) {
  one = layout.size == layout.true_extent && layout.true_lower_bound == 0;
  if (!one || layout.size == 0) return MPI_SUCCESS;
  description d;
  if (const int failure = d.read(type, longest_description)) return failure;
  if (names_predefined(d.combiner)) return MPI_SUCCESS;
  run all;
  const auto n = [&] { return d.number(0); };
  int code = MPI_SUCCESS;
  switch (d.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      code = all.add(0, 1, d.types[0]);
      break;
    case MPI_COMBINER_CONTIGUOUS:
      code = all.add(0, n(), d.types[0]);
      break;
    // Two blocks of a vector show how all lie.
    case MPI_COMBINER_VECTOR:
      for (std::int64_t i = 0; i < std::min<std::int64_t>(n(), 2) && code == MPI_SUCCESS; ++i)
        code = all.add_by_elements(i * d.number(2), d.number(1), d.types[0]);
      break;
    case MPI_COMBINER_HVECTOR:
      for (std::int64_t i = 0; i < std::min<std::int64_t>(n(), 2) && code == MPI_SUCCESS; ++i)
        code = all.add(i * d.number(2), d.number(1), d.types[0]);
      break;
    case MPI_COMBINER_INDEXED:
      for (std::int64_t i = 0; i < n() && code == MPI_SUCCESS; ++i)
        code = all.add_by_elements(d.number(1 + n() + i), d.number(1 + i), d.types[0]);
      break;
    case MPI_COMBINER_HINDEXED:
      for (std::int64_t i = 0; i < n() && code == MPI_SUCCESS; ++i)
        code = all.add(d.number(1 + n() + i), d.number(1 + i), d.types[0]);
      break;
    case MPI_COMBINER_INDEXED_BLOCK:
      for (std::int64_t i = 0; i < n() && code == MPI_SUCCESS; ++i)
        code = all.add_by_elements(d.number(2 + i), d.number(1), d.types[0]);
      break;
    case MPI_COMBINER_HINDEXED_BLOCK:
      for (std::int64_t i = 0; i < n() && code == MPI_SUCCESS; ++i)
        code = all.add(d.number(2 + i), d.number(1), d.types[0]);
      break;
    case MPI_COMBINER_STRUCT:
      for (std::int64_t i = 0; i < n() && code == MPI_SUCCESS; ++i)
        code = all.add(d.number(1 + n() + i), d.number(1 + i), d.types[std::size_t(i)]);
      break;
    case MPI_COMBINER_SUBARRAY: {  // its rows lie one behind the other, or it had gaps
      std::int64_t elements = 1;
      const std::int64_t first = (d.is_large ? 2 : 1) + n();
      for (std::int64_t i = 0; i < n(); ++i) elements *= d.number(first + i);
      code = all.add(0, elements, d.types[0]);
      break;
    }
    default:
      one = false;
  }
  one = one && all.unbroken();
  return code;
}

int inspect(MPI_Datatype type, datatype_layout& layout) {
  if (const int failure = measure(type, layout)) return failure;
  bool one = false;
  if (const int failure = is_one_run(type, layout, one)) return failure;
  layout.packed = one && layout.extent == layout.size;
  return MPI_SUCCESS;
}

}  // namespace

bool is_predefined(MPI_Datatype type) {
  envelope e;
  return e.read(type) == MPI_SUCCESS && names_predefined(e.combiner);
}

int visit_packed(MPI_Datatype type, std::int64_t elements,
                 const std::function<void(MPI_Datatype, std::int64_t)>& visit) {
  MPI_Count size = 0;
  if (const int failure = PMPI_Type_size_x(type, &size)) return failure;
  if (size == 0 || elements == 0) return MPI_SUCCESS;
  description d;
  if (const int failure = d.read(type, std::numeric_limits<std::int64_t>::max())) return failure;
  if (names_predefined(d.combiner)) {
    visit(type, elements * size);
    return MPI_SUCCESS;
  }
  if (d.combiner != MPI_COMBINER_STRUCT) {  // other combiners repeat a single type
    MPI_Count size_of_part = 0;
    if (const int failure = PMPI_Type_size_x(d.types[0], &size_of_part)) return failure;
    return visit_packed(d.types[0], elements * (size / size_of_part), visit);
  }
  for (std::int64_t e = 0; e < elements; ++e)
    for (std::size_t i = 0; i < d.types.size(); ++i)
      if (const int failure = visit_packed(d.types[i], d.number(1 + std::int64_t(i)), visit))
        return failure;
  return MPI_SUCCESS;
}

int create_datatype_key(int* key) {
  return PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_layout, key, nullptr);
}

int layout_of(MPI_Datatype type, int key, datatype_layout& layout) {
  void* known = nullptr;
  int found = 0;
  if (const int failure = PMPI_Type_get_attr(type, key, &known, &found)) return failure;
  std::unique_lock<std::mutex> lock;
  if (!found) {
    lock = std::unique_lock(inspecting);
    if (const int failure = PMPI_Type_get_attr(type, key, &known, &found)) return failure;
  }
  if (found) {
    layout = *static_cast<datatype_layout*>(known);
    return MPI_SUCCESS;
  }
  auto fresh = std::make_unique<datatype_layout>();
  if (const int failure = inspect(type, *fresh)) return failure;
  layout = *fresh;
  if (const int failure = PMPI_Type_set_attr(type, key, fresh.get())) return failure;
  static_cast<void>(fresh.release());  // the attribute owns it
  return MPI_SUCCESS;
}

}  // namespace railpass::internal

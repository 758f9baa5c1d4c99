// SPDX-License-Identifier: BSL-1.0
//
// Distributed logistic regression: learns to read handwritten digits. Every rank holds a part of
// the rows; in each step all of them add up their gradients (all_reduce), and after each pass over
// the data rank 0 hands out its model (broadcast), so that rounding never lets the ranks drift
// apart.
//
//     mpirun -n 8 logistic_regression --data digits.csv --library railpass
//
// --library boost runs the same program through Boost.MPI's own collectives. The answer is the same
// up to the order in which a sum is rounded.
//
// Pixels become random Fourier features (Rahimi, Recht: Random Features for Large-Scale Kernel
// Machines, NIPS 2007), which make the classes linearly separable; their number sets the size of
// the gradient, 80 bytes each.
#include "railpass/all_reduce.hpp"
#include "railpass/broadcast.hpp"

#include <CLI/CLI.hpp>
#include <boost/mpi/collectives.hpp>
#include <boost/mpi/environment.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <numbers>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace mpi = boost::mpi;

namespace {

constexpr int num_pixels = 64;
constexpr int num_classes = 10;
constexpr int rows_per_step = 256;  // of all ranks together
constexpr double kernel_width = 0.256;
constexpr double learning_rate = 2;
constexpr double momentum = 0.9;

struct row {
  std::array<double, num_pixels> pixels;  // 0 to 1
  int label;
};

struct options {
  std::string data;
  std::string library = "railpass";
  int features = 6554;  // a gradient of half a MiB
  int passes = 20;
};

/// Lines of 64 pixels from 0 to 16 and the digit they show, separated by commas.
std::vector<row> read_rows(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  std::vector<row> rows;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    row r{};
    double value = 0;
    char comma = 0;
    for (double& pixel : r.pixels)
      if (fields >> value >> comma) pixel = value / 16;
    if (!(fields >> value) || value < 0 || value >= num_classes)
      throw std::runtime_error(path + ":" + std::to_string(rows.size() + 1) +
                               ": expected 64 pixels and a digit, separated by commas");
    r.label = int(value);
    rows.push_back(r);
  }
  if (rows.empty()) throw std::runtime_error(path + ": no rows");
  return rows;
}

struct boost_library {
  static constexpr const char* name = "boost";
  template <class... Arguments>
  static void broadcast(Arguments&&... arguments) {
    mpi::broadcast(arguments...);
  }
  template <class... Arguments>
  static void all_reduce(Arguments&&... arguments) {
    mpi::all_reduce(arguments...);
  }
};

struct railpass_library {
  static constexpr const char* name = "railpass";
  template <class... Arguments>
  static void broadcast(Arguments&&... arguments) {
    railpass::broadcast(arguments...);
  }
  template <class... Arguments>
  static void all_reduce(Arguments&&... arguments) {
    railpass::all_reduce(arguments...);
  }
};

/// The collectives of one library, and the time spent in them.
template <class Library>
class timed {
 public:
  explicit timed(const mpi::communicator& world) : world_(world) {}

  void broadcast(std::vector<double>& values) {
    const double start = MPI_Wtime();
    Library::broadcast(world_, values.data(), int(values.size()), 0);
    broadcast_s += MPI_Wtime() - start;
    ++broadcasts;
  }

  void sum(const std::vector<double>& mine, std::vector<double>& total) {
    const double start = MPI_Wtime();
    Library::all_reduce(world_, mine.data(), int(mine.size()), total.data(), std::plus<double>());
    all_reduce_s += MPI_Wtime() - start;
    ++all_reduces;
  }

  double broadcast_s = 0;
  double all_reduce_s = 0;
  int broadcasts = 0;
  int all_reduces = 0;

 private:
  const mpi::communicator& world_;
};

/// cos(w x + b) for random w and b, the same on all ranks.
class feature_map {
 public:
  template <class Library>
  feature_map(const mpi::communicator& world, timed<Library>& collectives, int features)
      : features_(features), weights_(std::size_t(features) * (num_pixels + 1)) {
    if (world.rank() == 0) {
      std::mt19937_64 generator(1);
      std::normal_distribution<double> frequency(0, std::sqrt(2 * kernel_width));
      std::uniform_real_distribution<double> phase(0, 2 * std::numbers::pi);
      for (std::size_t i = 0; i < weights_.size(); ++i)
        weights_[i] = i % (num_pixels + 1) == num_pixels ? phase(generator) : frequency(generator);
    }
    collectives.broadcast(weights_);
  }

  void apply(const row& r, double* out) const {
    const double scale = std::sqrt(2.0 / features_);
    const double* w = weights_.data();
    for (int j = 0; j < features_; ++j, w += num_pixels + 1) {
      double angle = w[num_pixels];
      for (int i = 0; i < num_pixels; ++i) angle += w[i] * r.pixels[std::size_t(i)];
      out[j] = scale * std::cos(angle);
    }
  }

 private:
  int features_;
  std::vector<double> weights_;
};

/// The rows of this rank with their features.
struct share {
  std::vector<int> labels;
  std::vector<double> features;  // labels.size() rows

  share(const std::vector<row>& rows, int first, int step, const feature_map& map,
        int num_features) {
    for (std::size_t i = std::size_t(first); i < rows.size(); i += std::size_t(step)) {
      labels.push_back(rows[i].label);
      features.resize(features.size() + std::size_t(num_features));
      map.apply(rows[i], features.data() + features.size() - num_features);
    }
  }
};

/// Probabilities of the digits for one row.
std::array<double, num_classes> probabilities(const double* features,
                                              const std::vector<double>& model) {
  std::array<double, num_classes> p{};
  for (std::size_t j = 0; j < model.size() / num_classes; ++j)
    for (std::size_t k = 0; k < num_classes; ++k) p[k] += features[j] * model[j * num_classes + k];
  const double most = *std::max_element(p.begin(), p.end());
  double sum = 0;
  for (double& x : p) sum += x = std::exp(x - most);
  for (double& x : p) x /= sum;
  return p;
}

template <class Library>
void run(const mpi::communicator& world, const options& o) {
  const double start = MPI_Wtime();
  timed<Library> collectives(world);
  std::vector<row> training;
  std::vector<row> held_back;  // every fifth row, to be judged by
  const std::vector<row> rows = read_rows(o.data);
  for (std::size_t i = 0; i < rows.size(); ++i)
    (i % 5 == 4 ? held_back : training).push_back(rows[i]);
  const feature_map map(world, collectives, o.features);
  const share mine(training, world.rank(), world.size(), map, o.features);

  const std::size_t size = std::size_t(o.features) * num_classes;
  std::vector<double> model(size), gradient(size), total(size), velocity(size);
  const int steps_per_pass = std::max(1, int(training.size()) / rows_per_step);
  for (int pass = 0; pass < o.passes; ++pass) {
    for (int step = 0; step < steps_per_pass; ++step) {
      std::fill(gradient.begin(), gradient.end(), 0.0);
      for (std::size_t i = std::size_t(step); i < mine.labels.size();
           i += std::size_t(steps_per_pass)) {
        const double* features = mine.features.data() + i * std::size_t(o.features);
        std::array<double, num_classes> error = probabilities(features, model);
        error[std::size_t(mine.labels[i])] -= 1;
        for (std::size_t j = 0; j < std::size_t(o.features); ++j)
          for (std::size_t k = 0; k < num_classes; ++k)
            gradient[j * num_classes + k] += features[j] * error[k];
      }
      collectives.sum(gradient, total);
      const double rate = learning_rate / rows_per_step;
      for (std::size_t i = 0; i < size; ++i) {
        velocity[i] = momentum * velocity[i] - rate * total[i];
        model[i] += velocity[i];
      }
    }
    collectives.broadcast(model);
  }
  const double trained_s = MPI_Wtime() - start;

  const share judged(held_back, world.rank(), world.size(), map, o.features);
  std::array<double, 2> loss_and_hits{};
  for (std::size_t i = 0; i < judged.labels.size(); ++i) {
    const auto p = probabilities(judged.features.data() + i * std::size_t(o.features), model);
    const auto label = std::size_t(judged.labels[i]);
    loss_and_hits[0] -= std::log(p[label]);
    loss_and_hits[1] += std::max_element(p.begin(), p.end()) == p.begin() + std::ptrdiff_t(label);
  }
  std::array<double, 2> result{};
  mpi::all_reduce(world, loss_and_hits.data(), 2, result.data(), std::plus<double>());
  if (world.rank() != 0) return;
  const double count = double(held_back.size());
  std::printf(
      "library %s, %d ranks: loss %.6f, accuracy %.2f %% of %d digits not seen in training\n",
      Library::name, world.size(), result[0] / count, 100 * result[1] / count,
      int(held_back.size()));
  std::printf(
      "  time %.2f s: all_reduce %.2f s (%d of %d KiB), broadcast %.2f s (%d), computing %.2f s\n",
      trained_s, collectives.all_reduce_s, collectives.all_reduces,
      int(size * sizeof(double) / 1024), collectives.broadcast_s, collectives.broadcasts,
      trained_s - collectives.all_reduce_s - collectives.broadcast_s);
}

}  // namespace

int main(int argc, char** argv) {
  mpi::environment environment(argc, argv);
  const mpi::communicator world;
  options o;
  CLI::App app("Distributed logistic regression on handwritten digits");
  app.add_option("--data", o.data, "digits.csv")->required();
  app.add_option("--library", o.library, "whose collectives to call")
      ->check(CLI::IsMember({"railpass", "boost"}))
      ->capture_default_str();
  app.add_option("--features", o.features, "the gradient has 80 bytes per feature")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  app.add_option("--passes", o.passes, "passes over the data")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    if (o.library == "railpass")
      run<railpass_library>(world, o);
    else
      run<boost_library>(world, o);
  } catch (const CLI::ParseError& wrong) {
    return world.rank() == 0 ? app.exit(wrong) : wrong.get_exit_code();
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "logistic_regression: %s\n", failure.what());
    return 1;
  }
}

#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/workloads/numeric/tile_values.h"

namespace wafersim::workloads::numeric {

/// An operation that cannot be done as its meaning says.
class MeaningFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Numbers of rows or columns in the order in which they stand in a panel.
class Index {
 public:
  const std::vector<std::uint64_t>& numbers() const { return numbers_; }
  std::size_t size() const { return numbers_.size(); }
  std::uint64_t operator[](std::size_t place) const { return numbers_[place]; }
  void insert(std::uint64_t first, std::uint64_t count);
  std::optional<std::size_t> find(std::uint64_t number) const {
    return place(number) == kNowhere ? std::nullopt : std::optional(place(number));
  }
  /// Throws MeaningFault when it is not there.
  std::size_t at(std::uint64_t number) const {
    const std::size_t found = place(number);
    if (found == kNowhere) missing(number);
    return found;
  }
  bool operator==(const Index& other) const { return numbers_ == other.numbers_; }

 private:
  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
  std::size_t place(std::uint64_t number) const {
    return number < places_.size() ? places_[number] : kNowhere;
  }
  [[noreturn]] static void missing(std::uint64_t number);

  std::vector<std::uint64_t> numbers_;
  std::vector<std::size_t> places_;  ///< by number
};

/// What several views of one tensor name as one matrix: their rows one below the other, their columns side by
/// side.
struct Panel {
  Views views;
  std::size_t depth = 1;  ///< numbers in a cell
  Index rows;
  Index cols;
  Matrix values;  ///< rows x (cols depth)

  double& operator()(std::size_t row, std::size_t col) { return values(row, col); }
  double operator()(std::size_t row, std::size_t col) const { return values(row, col); }
  /// The numbers of a cell.
  std::span<double> cell(std::size_t row, std::size_t col) {
    return values.row(row).subspan(col * depth, depth);
  }
  std::span<const double> cell(std::size_t row, std::size_t col) const {
    return values.row(row).subspan(col * depth, depth);
  }
};

/// Zeros in the shape of the views.
Panel make_panel(const StepValues& step, const Views& views);
/// Throws MeaningFault when something is not there.
Panel read_panel(const StepValues& step, const Views& views);
void set_part(Panel& panel, const View& view, const Matrix& part);
/// What the panel has of one of its views.
Matrix part_of(const Panel& panel, const View& view);

}  // namespace wafersim::workloads::numeric

#include "tests/workloads/numeric/numeric_executor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/workloads/numeric/kernels.h"
#include "workloads/region_map.h"
#include "workloads/step_emitter.h"

namespace wafersim::workloads::numeric {

NumericExecutor::NumericExecutor(const Trace& trace, const Problem& problem, const ParameterMap& map,
                                 const std::vector<double>& initial, FaultList& faults)
    : trace_(trace),
      problem_(problem),
      map_(map),
      faults_(faults),
      shapes_(tensor_shapes(trace, static_cast<std::uint64_t>(problem.model.sequence))) {
  const Parameters parameters(problem.model);
  for (const TileBinding& tile : trace.tiles) {
    TileValues& values = tiles_.emplace_back(Tile{TileValues(shapes_), {}, {}, {}}).values;
    for (const View& view : trace.statics[tile.statics].holds) {
      Matrix column(view.region.rows, 1);
      for (std::size_t i = 0; i < column.rows; ++i) {
        const auto index = parameters.index(view.layer, map.at(view.layer, view.region.row + i));
        column(i, 0) = index ? initial[*index] : 0;
      }
      values.write({view.tensor, view.layer}, view.region, column);
    }
  }
}

void NumericExecutor::performed(const OpInstance& at) {
  const Meaning& meaning = meaning_of(at);
  if (meaning.kernel == Kernel::none) return;
  if (op_of(at).kind == OpKind::send || op_of(at).kind == OpKind::multicast) return send(at, meaning);
  if (meaning.kernel == Kernel::add || meaning.kernel == Kernel::maximum) return take_landed(at, meaning);
  Results results;
  try {
    results = compute(at, meaning);
  } catch (const MeaningFault& wrong) {
    fault(at, wrong.what());
  }
  StepValues step = step_values(at);
  for (const View& view : meaning.discards) step.erase(view);
  // The softmax-weighted sum over more keys takes the place of the one over fewer.
  const bool adds = meaning.adds && meaning.kernel != Kernel::attend;
  for (const KernelCall::Result& each : results) step.write(each.view, each.values, adds);
}

NumericExecutor::Results NumericExecutor::compute(const OpInstance& at, const Meaning& meaning) {
  const StepValues step = step_values(at);
  if (meaning.kernel == Kernel::square_sum) return square_sum(meaning, step);
  if (meaning.kernel == Kernel::update) return update(at, meaning, step);
  if (meaning.kernel == Kernel::accumulate) {
    Results results;
    for (std::size_t i = 0; i < meaning.reads.size(); ++i) {
      results.push_back({meaning.writes.at(i), step.read(meaning.reads[i])});
    }
    return results;
  }
  const auto replica = static_cast<std::uint64_t>(trace_.tiles[at.tile].group / trace_.pipeline_stages);
  KernelCall call(problem_, map_, meaning, step, replica, tiles_[at.tile].statistics);
  run_kernel(call);
  losses_.insert(call.losses().begin(), call.losses().end());
  return call.results();
}

NumericExecutor::Results NumericExecutor::square_sum(const Meaning& meaning, const StepValues& step) const {
  double sum = 0;
  for (const View& view : meaning.reads) {
    for (const double value : step.read(view).data) sum += value * value;
  }
  return {{meaning.writes.at(0), Matrix(1, 1, sum)}};
}

/// w - rate x g, with g scaled to the largest norm when it is larger.
NumericExecutor::Results NumericExecutor::update(const OpInstance& at, const Meaning& meaning,
                                                 const StepValues& step) {
  Views weights, gradients;
  double scale = 1;
  for (const View& view : meaning.reads) {
    if (step.scope(view) == TensorScope::parameter) weights.push_back(view);
    if (step.scope(view) == TensorScope::gradient) gradients.push_back(view);
    if (step.scope(view) != TensorScope::activation) continue;
    square_sums_.push_back(step.read(view)(0, 0));
    const double norm = std::sqrt(square_sums_.back());
    if (problem_.largest_norm > 0) scale = std::min(1.0, problem_.largest_norm / norm);
  }
  if (weights.size() != gradients.size()) throw MeaningFault("other weights than gradients");
  Results results;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i].region != gradients[i].region ||
        step.key(weights[i]).layer != step.key(gradients[i]).layer) {
      throw MeaningFault("other weights than gradients");
    }
    Matrix weight = step.read(weights[i]);
    const Matrix gradient = step.read(gradients[i]);
    for (std::size_t row = 0; row < weight.rows; ++row) {
      gradients_.push_back({at.tile, step.step().iteration, step.key(weights[i]).layer,
                            weights[i].region.row + row, gradient(row, 0)});
      weight(row, 0) -= problem_.learning_rate * scale * gradient(row, 0);
    }
    results.push_back({weights[i], std::move(weight)});
  }
  return results;
}

void NumericExecutor::send(const OpInstance& at, const Meaning& meaning) {
  const StepValues step = step_values(at);
  InFlight& sent = in_flight_[at];
  sent.receivers_left = op_of(at).kind == OpKind::multicast ? op_of(at).peer_count : 1;
  std::vector<Carried>& carried = sent.parts;
  for (const View& view : meaning.writes) {
    if (meaning.kernel != Kernel::pass) {
      carried.push_back({step.key(view), view.region, step.read(view)});
    } else if (auto part = take(tiles_[at.tile].passing, step.key(view), view.region)) {
      carried.push_back(std::move(*part));
    } else {
      fault(at, "there is nothing to pass on");
    }
  }
}

void NumericExecutor::received(const OpInstance& sender, const OpInstance& receiver) {
  const auto carried = in_flight_.find(sender);
  if (carried == in_flight_.end()) return;
  const std::vector<Carried> parts = carried->second.parts;
  if (--carried->second.receivers_left == 0) in_flight_.erase(carried);
  const Meaning& meaning = meaning_of(receiver);
  Tile& tile = tiles_[receiver.tile];
  const StepValues step = step_values(receiver);
  if (parts.size() != meaning.writes.size()) return fault(receiver, "expects something else than it gets");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // The receiver's own name for what it gets.
    Carried part = parts[i];
    part.key = step.key(meaning.writes[i]);
    part.region = meaning.writes[i].region;
    if (part.region.area() != parts[i].region.area())
      return fault(receiver, "expects something else than it gets");
    if (meaning.kernel == Kernel::transfer) tile.values.write(part.key, part.region, part.values);
    if (meaning.kernel == Kernel::land) tile.landed.push_back(std::move(part));
    if (meaning.kernel == Kernel::pass) tile.passing.push_back(std::move(part));
  }
}

void NumericExecutor::take_landed(const OpInstance& at, const Meaning& meaning) {
  Tile& tile = tiles_[at.tile];
  const StepValues step = step_values(at);
  for (const View& view : meaning.writes) {
    const std::optional<Carried> found = take(tile.landed, step.key(view), view.region);
    if (!found) {
      fault(at, "nothing has landed");
      continue;
    }
    if (meaning.kernel == Kernel::add) {
      tile.values.add(found->key, found->region, found->values);
    } else {
      Matrix larger = tile.values.read(found->key, found->region);
      for (std::size_t i = 0; i < larger.data.size(); ++i) {
        larger.data[i] = std::max(larger.data[i], found->values.data[i]);
      }
      tile.values.write(found->key, found->region, larger);
    }
  }
}

std::optional<NumericExecutor::Carried> NumericExecutor::take(std::deque<Carried>& from, const MatrixKey& key,
                                                              const Region& region) {
  const auto found = std::find_if(from.begin(), from.end(), [&](const Carried& each) {
    return each.key == key && each.region == region;
  });
  if (found == from.end()) return std::nullopt;
  Carried part = std::move(*found);
  from.erase(found);
  return part;
}

double NumericExecutor::loss(std::uint64_t iteration) const {
  double sum = 0;
  std::uint64_t tokens = 0;
  for (const auto& [place, loss] : losses_) {
    if (std::get<0>(place) != iteration) continue;
    sum += loss;
    ++tokens;
  }
  if (tokens != problem_.tokens()) return std::numeric_limits<double>::quiet_NaN();
  return sum / static_cast<double>(tokens);
}

/// For each parameter that a tile held at first the number at its place in another tensor or iteration.
std::vector<BucketValue> NumericExecutor::held(const MatrixKey& instead) const {
  std::vector<BucketValue> result;
  for (std::uint32_t tile = 0; tile < tiles_.size(); ++tile) {
    for (const View& view : trace_.statics[trace_.tiles[tile].statics].holds) {
      const Matrix values =
          tiles_[tile].values.read({instead.tensor, view.layer, -1, instead.iteration}, view.region);
      for (std::size_t i = 0; i < values.rows; ++i) {
        result.push_back({tile, instead.iteration, view.layer, view.region.row + i, values(i, 0)});
      }
    }
  }
  return result;
}

namespace {

std::uint32_t tensor_named(const Trace& trace, const std::string& name) {
  for (std::uint32_t i = 0; i < trace.tensors.size(); ++i) {
    if (trace.tensors[i].name == name) return i;
  }
  return 0;
}

}  // namespace

std::vector<BucketValue> NumericExecutor::weights() const {
  return held({tensor_named(trace_, tensors::kWeights), 0, -1, -1});
}

std::vector<BucketValue> NumericExecutor::gradients_left(std::int32_t iteration) const {
  return held({tensor_named(trace_, tensors::kGradients), 0, -1, iteration});
}

void NumericExecutor::fault(const OpInstance& at, const std::string& what) {
  faults_.add([&] {
    const Step& step = step_of(at);
    return fmt::format("tile {}, {} (layer {}, microbatch {}), operation {} ({}): {}", at.tile,
                       trace_.templates[step.step_template].name, step.layer, step.microbatch, at.op,
                       to_string(meaning_of(at).kernel), what);
  });
}

}  // namespace wafersim::workloads::numeric

#include "workloads/collectives/piece.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace wafersim::workloads::collectives {

std::vector<ShardRange> ranges_of(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<ShardRange> ranges;
  for (const int rank : ranks) {
    if (!ranges.empty() && ranges.back().first + ranges.back().count == rank) {
      ++ranges.back().count;
    } else {
      ranges.push_back({rank, 1});
    }
  }
  return ranges;
}

Slice even_slice(std::uint64_t count, int parts, int index) {
  const auto divisor = static_cast<std::uint64_t>(parts);
  const auto number = static_cast<std::uint64_t>(index);
  const std::uint64_t quotient = count / divisor, larger = count % divisor;
  return {number * quotient + std::min(number, larger), quotient + (number < larger ? 1 : 0)};
}

namespace {

/// Without views a row is a byte.
std::uint64_t row_count(const CollectiveVector& vector) {
  return vector.views.empty() ? vector.bytes : total_rows(vector.views);
}

std::uint64_t elements_per_row(const CollectiveVector& vector) {
  return vector.elements / std::max<std::uint64_t>(row_count(vector), 1);
}

/// Appends a view, or lengthens the last one when it goes on in the same matrix.
void add_below(Views& views, const View& view) {
  if (!views.empty()) {
    View expected = views.back();
    expected.region.row = views.back().region.row_end();
    expected.region.rows = view.region.rows;
    if (view == expected) {
      views.back().region.rows += view.region.rows;
      return;
    }
  }
  views.push_back(view);
}

}  // namespace

Piece::Piece(StepBuilder& builder, const Group& group, const CollectiveVector& vector,
             std::uint32_t first_channel, int chunk, int chunks)
    : builder_(builder),
      group_(group),
      vector_(vector),
      bytes_per_row_(vector.bytes / std::max<std::uint64_t>(row_count(vector), 1)),
      first_channel_(first_channel),
      chunk_(chunk),
      chunks_(chunks) {
  require_invariant(bytes_per_row_ * row_count(vector) == vector.bytes, "the rows of a vector have equal sizes");
}

/// This piece of a shard, among `total` things.
Slice Piece::slice(std::uint64_t total, int shard) const {
  Slice whole = even_slice(total, group_.size, shard);
  if (!vector_.shards.empty()) {
    const auto own = vector_.shards.begin() + shard;
    whole = {std::accumulate(vector_.shards.begin(), own, std::uint64_t{0}), *own};
  }
  const Slice part = even_slice(whole.size, chunks_, chunk_);
  return {whole.first + part.first, part.size};
}

std::uint64_t Piece::count(std::uint64_t total, const Shards& shards) const {
  std::uint64_t sum = 0;
  for (const ShardRange& range : shards.ranges) {
    for (int shard = range.first; shard < range.first + range.count; ++shard) sum += slice(total, shard).size;
  }
  return sum;
}

Bytes Piece::bytes(const Shards& shards) const { return count(row_count(vector_), shards) * bytes_per_row_; }

std::uint64_t Piece::elements(const Shards& shards) const {
  if (vector_.views.empty()) return count(vector_.elements, shards);
  return count(row_count(vector_), shards) * elements_per_row(vector_);
}

std::optional<OpId> Piece::send(Phase phase, int to, const Shards& shards,
                                const std::vector<OpId>& after) {
  if (bytes(shards) == 0) return std::nullopt;
  return builder_.send(group_.axis, group_.peer(to), channel(phase, shards), bytes(shards), after,
                       operand(phase == Phase::reduce ? Kernel::land : Kernel::transfer, shards));
}

void Piece::multicast(const std::vector<int>& to, const Shards& shards, const std::vector<OpId>& after) {
  if (bytes(shards) == 0) return;
  std::vector<std::uint32_t> peers;
  for (const int member : to) peers.push_back(group_.peer(member));
  builder_.multicast(group_.axis, peers, channel(Phase::gather, shards), bytes(shards), after,
                     operand(Kernel::transfer, shards));
}

std::optional<OpId> Piece::receive(Phase phase, int from, const Shards& shards,
                                   const std::vector<OpId>& after) {
  if (bytes(shards) == 0) return std::nullopt;
  return builder_.receive(group_.axis, group_.peer(from), channel(phase, shards), bytes(shards), after,
                          operand(phase == Phase::reduce ? Kernel::land : Kernel::transfer, shards));
}

OpId Piece::reduce(const Shards& shards, const std::vector<OpId>& after) {
  const Work work{
      .gemm = {}, .vector_flops = elements(shards), .sram_bytes = 3 * bytes(shards)};
  return builder_.reduce(group_.axis, work, after, operand(vector_.combine, shards));
}

OpId Piece::allocate_landing(const Shards& shards, const std::vector<OpId>& after) {
  return builder_.allocate(MemoryClass::communication_buffers, bytes(shards), after);
}

OpId Piece::free_landing(const Shards& shards, const std::vector<OpId>& after) {
  return builder_.free(MemoryClass::communication_buffers, bytes(shards), after);
}

std::uint32_t Piece::channel(Phase phase, const Shards& shards) const {
  const int phases_before = 2 * chunk_ + (phase == Phase::gather ? 1 : 0);
  return first_channel_ + static_cast<std::uint32_t>(phases_before * group_.size + shards.ranges.front().first);
}

Operand Piece::operand(Kernel kernel, const Shards& shards) const {
  Operand result{.tensor = vector_.tensor, .partial = kernel != Kernel::transfer};
  if (vector_.views.empty()) return result;
  Views views;
  for (const ShardRange& range : shards.ranges) {
    for (int shard = range.first; shard < range.first + range.count; ++shard) {
      const Slice rows = slice(row_count(vector_), shard);
      for (const View& view : slice_rows(vector_.views, rows.first, rows.size)) add_below(views, view);
    }
  }
  result.meaning = builder_.meaning({.kernel = kernel, .adds = kernel == vector_.combine, .writes = views});
  return result;
}

void SendQueue::send(const Shards& shards, std::vector<OpId> after) {
  if (last_) after.push_back(*last_);
  const std::optional<OpId> sent = piece_.send(phase_, to_, shards, after);
  if (sent) last_ = sent;
}

std::optional<OpId> ReceiveQueue::receive(const Shards& shards) {
  const std::size_t count = received_.size();
  const auto received =
      piece_.receive(phase_, from_, shards, count < 2 ? after_ : std::vector<OpId>{received_[count - 2]});
  if (received) received_.push_back(*received);
  return received;
}

std::optional<OpId> ReduceQueue::add(const Shards& shards) {
  if (piece_.bytes(shards) == 0) return std::nullopt;
  const std::size_t count = frees_.size();
  const OpId landing =
      piece_.allocate_landing(shards, count < 2 ? after_ : std::vector<OpId>{frees_[count - 2]});
  const OpId received = *piece_.receive(Phase::reduce, from_, shards, {landing});
  const OpId sum = piece_.reduce(shards, {received});
  frees_.push_back(piece_.free_landing(shards, {sum}));
  return sum;
}

std::vector<OpId> either(const std::optional<OpId>& op, const std::vector<OpId>& otherwise) {
  return op ? std::vector<OpId>{*op} : otherwise;
}

}  // namespace wafersim::workloads::collectives

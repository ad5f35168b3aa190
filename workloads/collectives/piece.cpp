#include "workloads/collectives/piece.h"

#include <algorithm>

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

Piece::Piece(StepBuilder& builder, const Group& group, const CollectiveVector& vector,
             std::uint32_t first_channel, int chunk, int chunks)
    : builder_(builder),
      group_(group),
      tensor_(vector.tensor),
      bytes_(even_slice(vector.bytes, chunks, chunk).size),
      elements_(even_slice(vector.elements, chunks, chunk).size),
      first_channel_(first_channel),
      chunk_(chunk),
      chunks_(chunks) {}

Bytes Piece::bytes(const ShardRange& range) const {
  return even_slice(bytes_, group_.size, range.first + range.count).first -
         even_slice(bytes_, group_.size, range.first).first;
}

std::uint64_t Piece::elements(const ShardRange& range) const {
  return even_slice(elements_, group_.size, range.first + range.count).first -
         even_slice(elements_, group_.size, range.first).first;
}

std::optional<OpId> Piece::send(Phase phase, int to, const ShardRange& range,
                                const std::vector<OpId>& after) {
  if (bytes(range) == 0) return std::nullopt;
  return builder_.send(group_.axis, group_.peer(to), channel(phase, range), bytes(range), after,
                       operand(phase == Phase::reduce, range));
}

std::optional<OpId> Piece::receive(Phase phase, int from, const ShardRange& range,
                                   const std::vector<OpId>& after) {
  if (bytes(range) == 0) return std::nullopt;
  return builder_.receive(group_.axis, group_.peer(from), channel(phase, range), bytes(range), after,
                          operand(phase == Phase::reduce, range));
}

OpId Piece::reduce(const ShardRange& range, const std::vector<OpId>& after) {
  const Work work{
      .gemm = {}, .vector_flops = elements(range), .sram_bytes = 3 * bytes(range), .dram_bytes = 0};
  return builder_.reduce(group_.axis, work, after, operand(true, range));
}

OpId Piece::allocate_landing(const ShardRange& range, const std::vector<OpId>& after) {
  return builder_.allocate(MemoryClass::communication_buffers, bytes(range), after);
}

OpId Piece::free_landing(const ShardRange& range, const std::vector<OpId>& after) {
  return builder_.free(MemoryClass::communication_buffers, bytes(range), after);
}

std::uint32_t Piece::channel(Phase phase, const ShardRange& range) const {
  const int phases_before = 2 * chunk_ + (phase == Phase::gather ? 1 : 0);
  return first_channel_ + static_cast<std::uint32_t>(phases_before * group_.size + range.first);
}

Operand Piece::operand(bool partial, const ShardRange& range) const {
  return {.tensor = tensor_,
          .part = static_cast<std::uint16_t>(chunk_ * group_.size + range.first),
          .parts = static_cast<std::uint16_t>(chunks_ * group_.size),
          .span = static_cast<std::uint16_t>(range.count),
          .partial = partial};
}

void SendQueue::send(const ShardRange& range, std::vector<OpId> after) {
  if (last_) after.push_back(*last_);
  const std::optional<OpId> sent = piece_.send(phase_, to_, range, after);
  if (sent) last_ = sent;
}

std::optional<OpId> ReceiveQueue::receive(const ShardRange& range) {
  const std::size_t count = received_.size();
  const auto received =
      piece_.receive(phase_, from_, range, count < 2 ? after_ : std::vector<OpId>{received_[count - 2]});
  if (received) received_.push_back(*received);
  return received;
}

std::optional<OpId> ReduceQueue::add(const ShardRange& range) {
  if (piece_.bytes(range) == 0) return std::nullopt;
  const std::size_t count = frees_.size();
  const OpId landing =
      piece_.allocate_landing(range, count < 2 ? after_ : std::vector<OpId>{frees_[count - 2]});
  const OpId received = *piece_.receive(Phase::reduce, from_, range, {landing});
  const OpId sum = piece_.reduce(range, {received});
  frees_.push_back(piece_.free_landing(range, {sum}));
  return sum;
}

std::vector<OpId> either(const std::optional<OpId>& op, const std::vector<OpId>& otherwise) {
  return op ? std::vector<OpId>{*op} : otherwise;
}

}  // namespace wafersim::workloads::collectives

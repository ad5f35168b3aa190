#pragma once

#include <optional>
#include <vector>

#include "workloads/collectives.h"

namespace wafersim::workloads::collectives {

/// The shards first .. first + count - 1 of a piece.
struct ShardRange {
  int first = 0;
  int count = 1;
};

/// The maximal ranges of consecutive numbers in `ranks`, ascending.
std::vector<ShardRange> ranges_of(std::vector<int> ranks);

/// What one message carries: ranges, ascending.
struct Shards {
  Shards(const ShardRange& range) : ranges{range} {}  // NOLINT(google-explicit-constructor): a range is one of them
  explicit Shards(std::vector<int> ranks) : ranges(ranges_of(std::move(ranks))) {}
  std::vector<ShardRange> ranges;
};

/// Where the messages of a collective belong: towards a sum, or with complete values. The two use channels of
/// their own, so that a shard may pass the same link in both.
enum class Phase : std::uint8_t { reduce, gather };

/// First and size of part `index` of `count` items cut evenly into `parts`, the first ones larger by one.
struct Slice {
  std::uint64_t first = 0;
  std::uint64_t size = 0;
};
Slice even_slice(std::uint64_t count, int parts, int index);

/// One of the pieces into which a collective cuts its vector, as one member sees it: writes messages and
/// reductions.
class Piece {
 public:
  /// `first_channel` is the first of 2 * chunks * size that the collective has reserved.
  Piece(StepBuilder& builder, const Group& group, const CollectiveVector& vector, std::uint32_t first_channel,
        int chunk, int chunks);

  const Group& group() const { return group_; }
  ShardRange whole() const { return {0, group_.size}; }
  Bytes bytes(const Shards& shards) const;

  /// Nothing is written for a range of zero bytes.
  std::optional<OpId> send(Phase phase, int to, const Shards& shards, const std::vector<OpId>& after);
  /// Complete values to several members at once, copied on their way.
  void multicast(const std::vector<int>& to, const Shards& shards, const std::vector<OpId>& after);
  std::optional<OpId> receive(Phase phase, int from, const Shards& shards, const std::vector<OpId>& after);
  OpId reduce(const Shards& shards, const std::vector<OpId>& after);
  OpId allocate_landing(const Shards& shards, const std::vector<OpId>& after);
  OpId free_landing(const Shards& shards, const std::vector<OpId>& after);

 private:
  std::uint64_t elements(const Shards& shards) const;
  std::uint32_t channel(Phase phase, const Shards& shards) const;
  Slice slice(std::uint64_t total, int shard) const;
  std::uint64_t count(std::uint64_t total, const Shards& shards) const;
  Operand operand(Kernel kernel, const Shards& shards) const;

  StepBuilder& builder_;
  const Group& group_;
  const CollectiveVector& vector_;
  Bytes bytes_per_row_;
  std::uint32_t first_channel_;
  int chunk_;
  int chunks_;
};

/// Messages to one neighbour, each posted when the one before has left: ready messages of a NIC would share
/// the way and all arrive late.
class SendQueue {
 public:
  SendQueue(Piece& piece, Phase phase, int to) : piece_(piece), phase_(phase), to_(to) {}
  void send(const Shards& shards, std::vector<OpId> after);

 private:
  Piece& piece_;
  Phase phase_;
  int to_;
  std::optional<OpId> last_;
};

/// Complete values from one neighbour, which sends them one after the other: two receives are posted ahead, enough that no
/// message finds none.
class ReceiveQueue {
 public:
  ReceiveQueue(Piece& piece, Phase phase, int from, std::vector<OpId> after)
      : piece_(piece), phase_(phase), from_(from), after_(std::move(after)) {}
  /// Nothing for zero bytes.
  std::optional<OpId> receive(const Shards& shards);

 private:
  Piece& piece_;
  Phase phase_;
  int from_;
  std::vector<OpId> after_;
  std::vector<OpId> received_;
};

/// Partial sums from one neighbour: each lands in a buffer and is added to the member's own values. At most
/// two buffers are held: one that is being added and one that is being filled.
class ReduceQueue {
 public:
  ReduceQueue(Piece& piece, int from, std::vector<OpId> after)
      : piece_(piece), from_(from), after_(std::move(after)) {}
  /// The reduction, after which the member's values of the range include the neighbour's; nothing for zero
  /// bytes.
  std::optional<OpId> add(const Shards& shards);

 private:
  Piece& piece_;
  int from_;
  std::vector<OpId> after_;
  std::vector<OpId> frees_;  ///< of all landing buffers so far
};

/// `op` alone when there is one, else `otherwise`.
std::vector<OpId> either(const std::optional<OpId>& op, const std::vector<OpId>& otherwise);

}  // namespace wafersim::workloads::collectives

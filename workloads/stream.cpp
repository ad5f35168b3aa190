#include "workloads/stream.h"

#include <algorithm>
#include <map>

namespace wafersim::workloads {

namespace {

using Piece = std::pair<int, int>;  ///< the owner's place on the line, chunk

/// What both directions of a stream have in common: channels, messages in order for each neighbour, and at most two
/// receives posted ahead.
class StreamEmitter {
 public:
  StreamEmitter(StepEmitter& step, const StreamLine& line, const StreamBlocks& blocks)
      : step_(step),
        line_(line),
        blocks_(blocks),
        first_op_(static_cast<OpId>(step.builder().size())),
        first_channel_(
            step.builder().new_channels(static_cast<std::uint32_t>(line.size() * blocks.chunks) * kLanes)) {}

 protected:
  StepBuilder& builder() { return step_.builder(); }
  int member(int place) const { return line_.members[static_cast<std::size_t>(place)]; }
  std::uint32_t peer(int place) const { return line_.group.peer(member(place)); }
  /// Blocks that only pass a member have channels of their own.
  std::uint32_t channel(const Piece& piece, bool passing) const {
    const auto number = static_cast<std::uint32_t>(piece.first * blocks_.chunks + piece.second);
    return first_channel_ + number * kLanes + (passing ? 1U : 0U);
  }
  Bytes bytes(const Piece& piece) const { return blocks_.bytes(member(piece.first), piece.second); }
  /// More slices than columns leave some without any: they do not travel and are of no use.
  bool empty(const Piece& piece) const { return bytes(piece) == 0; }
  Views views(const Piece& piece) const { return blocks_.views(member(piece.first), piece.second); }
  Operand operand(Kernel kernel, const Piece& piece) {
    Operand result = step_.operand({.kernel = kernel, .adds = kernel == Kernel::add, .writes = views(piece)});
    result.partial = kernel != Kernel::transfer;
    result.paced = true;
    return result;
  }
  Deps hold(const Piece& piece, const Deps& after) {
    return {builder().allocate(MemoryClass::stream_buffers, bytes(piece), after)};
  }
  void release(const Piece& piece, const Deps& after, const Views& discards) {
    builder().free(MemoryClass::stream_buffers, bytes(piece), after,
                   step_.operand({.kernel = Kernel::memory, .discards = discards}));
  }
  /// What used the block before this stream: an earlier one of the same tensor may have a buffer of it still.
  Deps earlier_users(const Piece& piece) const {
    Deps result = step_.builder().users(views(piece));
    std::erase_if(result, [&](OpId op) { return op >= first_op_; });
    return result;
  }

  Deps send(Kernel kernel, const Piece& piece, int to, bool passing, Deps after) {
    if (const auto last = last_send_.find(to); last != last_send_.end()) after.push_back(last->second);
    const OpId sent = builder().send(line_.group.axis, peer(to), channel(piece, passing), bytes(piece), after,
                                     operand(kernel, piece));
    last_send_[to] = sent;
    return {sent};
  }
  /// After the second last receive from there, and when an earlier stream's buffer of the same block is gone: a step
  /// that makes things again sees blocks twice.
  Deps receive(Kernel kernel, const Piece& piece, int from, bool passing, Deps after) {
    std::vector<OpId>& earlier = receives_[from];
    if (earlier.size() >= 2) after.push_back(earlier[earlier.size() - 2]);
    if (kernel == Kernel::transfer) after = join(std::move(after), earlier_users(piece));
    const Deps held = hold(piece, after);
    const OpId received = builder().receive(line_.group.axis, peer(from), channel(piece, passing), bytes(piece), held,
                                            operand(kernel, piece));
    earlier.push_back(received);
    return {received};
  }

  StepEmitter& step_;
  const StreamLine& line_;
  const StreamBlocks& blocks_;

 private:
  static constexpr std::uint32_t kLanes = 2;
  OpId first_op_;
  std::uint32_t first_channel_;
  std::map<int, OpId> last_send_;
  std::map<int, std::vector<OpId>> receives_;
};

class Outward : private StreamEmitter {
 public:
  using StreamEmitter::StreamEmitter;

  CollectedBlocks collect(const Deps& after) {
    const std::vector<StreamTransfer> transfers = stream_transfers(line_.variant, line_.relay, line_.size());
    start_ = after;
    there_[{line_.place, 0}] = after;
    for (int use = 0; use < line_.size(); ++use) done_.emplace_back();
    for (const StreamTransfer& transfer : transfers) move(transfer);
    CollectedBlocks result;
    result.own = member(line_.place);
    for (const auto& [piece, ready] : there_) result.there[member(piece.first)] = ready;
    for (const auto& [piece, sent] : released_) result.sent[member(piece.first)] = sent;
    return result;
  }

  BlockUse run(const Deps& after, const UseBlock& use) {
    const std::vector<int> order = stream_order(line_.variant, line_.size(), line_.place);
    const std::vector<StreamTransfer> transfers = stream_transfers(line_.variant, line_.relay, line_.size());
    start_ = after;
    for (int chunk = 0; chunk < blocks_.chunks; ++chunk) there_[{line_.place, chunk}] = after;
    auto next = transfers.begin();
    for (int round = 0; round < line_.size(); ++round) {
      for (int chunk = 0; chunk < blocks_.chunks; ++chunk) {
        const Piece piece{order[static_cast<std::size_t>(round)], chunk};
        if (empty(piece)) {
          done_.push_back(done_.empty() ? start_ : done_.back());
          continue;
        }
        BlockUse used = use(member(piece.first), chunk, there_.at(piece));
        done_.push_back(used.done);
        result_.done = join(std::move(result_.done), used.done);
        released_[piece] = join(std::move(released_[piece]), used.released);
      }
      for (; next != transfers.end() && next->round == round; ++next) move(*next);
    }
    return finish();
  }

 private:
  /// What use number `round` of a chunk is complete with; nothing before the first.
  Deps done(int round, int chunk) const {
    return round < 0 ? start_ : done_[static_cast<std::size_t>(round * blocks_.chunks + chunk)];
  }

  void move(const StreamTransfer& transfer) {
    if (transfer.from != line_.place && transfer.to != line_.place) return;
    for (int chunk = 0; chunk < blocks_.chunks; ++chunk) {
      const Piece piece{transfer.owner, chunk};
      if (empty(piece)) continue;
      if (transfer.from == line_.place) {
        // A block that passes was received in this round, under the same transfer.
        const auto passing = passing_.find(piece);
        const bool pass = passing != passing_.end();
        const Deps ready = pass ? passing->second : join(there_.at(piece), done(transfer.round - 1, chunk));
        const Deps sent =
            send(pass ? Kernel::pass : Kernel::transfer, piece, transfer.to, transfer.passing, ready);
        if (pass) {
          release(piece, sent, {});
          passing_.erase(passing);
        } else {
          released_[piece] = join(std::move(released_[piece]), sent);
        }
      } else {
        const Deps received = receive(transfer.passing ? Kernel::pass : Kernel::transfer, piece, transfer.from,
                                      transfer.passing,
                                      transfer.passing ? start_ : done(transfer.round - 2, chunk));
        (transfer.passing ? passing_ : there_)[piece] = received;
      }
    }
  }

  BlockUse finish() {
    for (const auto& [piece, used] : released_) {
      if (piece.first == line_.place) {
        result_.released = join(std::move(result_.released), used);
      } else {
        release(piece, used, views(piece));
      }
    }
    result_.released = join(std::move(result_.released), result_.done);
    return std::move(result_);
  }

  Deps start_;
  std::map<Piece, Deps> there_;
  std::map<Piece, Deps> passing_;
  std::map<Piece, Deps> released_;
  std::vector<Deps> done_;  ///< by use
  BlockUse result_;
};

class Inward : private StreamEmitter {
 public:
  using StreamEmitter::StreamEmitter;

  Deps run(const Deps& after, const UseBlock& make) {
    const std::vector<int> order = stream_order(line_.variant, line_.size(), line_.place);
    const std::vector<std::vector<StreamTransfer>> transfers = own_transfers();
    Deps before = after;
    for (int round = line_.size() - 1; round >= 0; --round) {
      for (int chunk = 0; chunk < blocks_.chunks; ++chunk) {
        const Piece piece{order[static_cast<std::size_t>(round)], chunk};
        if (empty(piece)) continue;
        before = make(member(piece.first), chunk, buffer(piece, before)).done;
        sum_[piece] = before;
      }
      // What comes for the blocks made so far, then the sums that are complete on this side.
      for (const StreamTransfer& transfer : transfers[static_cast<std::size_t>(round)]) {
        if (transfer.from == line_.place && transfer.starts) receive_part(transfer);
      }
      if (round == 0) continue;
      for (const StreamTransfer& transfer : transfers[static_cast<std::size_t>(round - 1)]) send_part(transfer);
    }
    Deps result;
    for (int chunk = 0; chunk < blocks_.chunks; ++chunk) {
      if (const Piece own{line_.place, chunk}; !empty(own)) result = join(std::move(result), sum_.at(own));
    }
    return result;
  }

 private:
  /// Parts that are made and not sent yet: so many may be held, then making waits for sending.
  static constexpr std::size_t kPartsAhead = 3;

  /// The transfers of the outward stream that this member takes part in, the last first, by round.
  std::vector<std::vector<StreamTransfer>> own_transfers() const {
    std::vector<std::vector<StreamTransfer>> by_round(static_cast<std::size_t>(line_.size()));
    std::vector<StreamTransfer> all = stream_transfers(line_.variant, line_.relay, line_.size());
    std::reverse(all.begin(), all.end());
    for (const StreamTransfer& each : all) {
      if (each.from == line_.place || each.to == line_.place) by_round[static_cast<std::size_t>(each.round)].push_back(each);
    }
    return by_round;
  }

  /// A buffer for the member's part of another member's block.
  Deps buffer(const Piece& piece, Deps after) {
    if (piece.first == line_.place) return after;
    const std::size_t ahead = kPartsAhead * static_cast<std::size_t>(blocks_.chunks);
    if (parts_sent_.size() >= ahead) {
      after = join(std::move(after), parts_sent_[parts_sent_.size() - ahead]);
    }
    return hold(piece, join(std::move(after), earlier_users(piece)));
  }

  /// A transfer of the outward stream, backwards: its `from` gets a part of the sum for the owner.
  void receive_part(const StreamTransfer& transfer) {
    for (int chunk = 0; chunk < blocks_.chunks; ++chunk) {
      const Piece piece{transfer.owner, chunk};
      if (empty(piece)) continue;
      const Deps received = receive(Kernel::land, piece, transfer.to, false, {});
      const Work work{.gemm = {},
                      .vector_flops = blocks_.elements(member(piece.first), chunk),
                      .sram_bytes = 3 * bytes(piece)};
      sum_[piece] = {builder().reduce(line_.group.axis, work, join(received, sum_.at(piece)),
                                      operand(Kernel::add, piece))};
      release(piece, sum_[piece], {});
    }
  }

  /// Its `to` sends the sum so far, or what it passes on. The last hop of an outward transfer is the first one here.
  void send_part(const StreamTransfer& transfer) {
    for (int chunk = 0; chunk < blocks_.chunks; ++chunk) {
      const Piece piece{transfer.owner, chunk};
      if (empty(piece)) continue;
      if (transfer.to == line_.place) {
        const bool passing = transfer.passing;
        const Deps sent = send(passing ? Kernel::pass : Kernel::land, piece, transfer.from, !transfer.starts,
                               passing ? passing_.at(piece) : sum_.at(piece));
        release(piece, sent, passing ? Views{} : views(piece));
        if (!passing) parts_sent_.push_back(sent);
      } else if (transfer.from == line_.place && !transfer.starts) {
        passing_[piece] = receive(Kernel::pass, piece, transfer.to, true, {});
      }
    }
  }

  std::map<Piece, Deps> sum_;
  std::map<Piece, Deps> passing_;
  std::vector<Deps> parts_sent_;
};

}  // namespace

BlockUse stream_outward(StepEmitter& step, const StreamLine& line, const StreamBlocks& blocks, const Deps& after,
                        const UseBlock& use) {
  return Outward(step, line, blocks).run(after, use);
}

CollectedBlocks stream_collect(StepEmitter& step, const StreamLine& line, const StreamBlocks& blocks,
                               const Deps& after) {
  return Outward(step, line, blocks).collect(after);
}

void CollectedBlocks::release(StepEmitter& step, const StreamBlocks& blocks, int owner, const Deps& used) const {
  if (owner == own) return;
  const auto passed = sent.find(owner);
  step.builder().free(MemoryClass::stream_buffers, blocks.bytes(owner, 0),
                      passed == sent.end() ? used : join(passed->second, used),
                      step.operand({.kernel = Kernel::memory, .discards = blocks.views(owner, 0)}));
}

Deps stream_inward(StepEmitter& step, const StreamLine& line, const StreamBlocks& blocks, const Deps& after,
                   const UseBlock& make) {
  return Inward(step, line, blocks).run(after, make);
}

}  // namespace wafersim::workloads

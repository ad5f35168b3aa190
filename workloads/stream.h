#pragma once

#include <functional>
#include <map>

#include "workloads/step_emitter.h"
#include "workloads/stream_schedule.h"

namespace wafersim::workloads {

/// The blocks of a tensor stream: one for each member of the group, each in `chunks` pieces that travel and are used one by one.
struct StreamBlocks {
  int chunks = 1;
  std::function<Views(int owner, int chunk)> views;
  std::function<Bytes(int owner, int chunk)> bytes;       ///< as it travels
  std::function<std::uint64_t(int owner, int chunk)> elements;  ///< for the cost of adding
};

/// What the use of a block is complete with.
struct BlockUse {
  Deps done;      ///< the block has been used: the result is there
  Deps released;  ///< nobody reads the block any more; `done` is always part of it
};
using UseBlock = std::function<BlockUse(int owner, int chunk, const Deps& ready)>;

/// Every member's block visits every member, which uses it in order of arrival. The member's own block is there after `after`; blocks of others are held in stream buffers until they were used and
/// passed on. A transfer of round r leaves when the sender has done its use number r - 1, so that a block arrives no
/// sooner than it is of use: with use time c and transfer time m the stream takes max(N c, (N - 1) m + c).
BlockUse stream_outward(StepEmitter& step, const StreamLine& line, const StreamBlocks& blocks, const Deps& after,
                        const UseBlock& use);

/// What stream_collect leaves behind.
struct CollectedBlocks {
  std::map<int, Deps> there;  ///< by owner: when its block is there
  std::map<int, Deps> sent;   ///< when it was passed on
  int own = 0;
  const Deps& own_sent() const { return sent.at(own); }
  /// Frees the buffer of another member's block after `used`.
  void release(StepEmitter& step, const StreamBlocks& blocks, int owner, const Deps& used) const;
};
/// As stream_outward, but every member keeps all blocks (of one chunk) until they are released.
CollectedBlocks stream_collect(StepEmitter& step, const StreamLine& line, const StreamBlocks& blocks,
                               const Deps& after);

/// Every member makes a part of every block's sum, in the reverse order of stream_outward; the parts flow inward, each
/// member adds its own, and the sums end at the owners. `make` writes the member's part of a block, after `ready`;
/// parts of other members' blocks are held in stream buffers until they were sent. Returns when the member's own
/// block is complete.
Deps stream_inward(StepEmitter& step, const StreamLine& line, const StreamBlocks& blocks, const Deps& after,
                   const UseBlock& make);

}  // namespace wafersim::workloads

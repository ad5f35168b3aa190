#pragma once

#include <string>
#include <vector>

#include "workloads/trace.h"
#include "workloads/use_index.h"

namespace wafersim::workloads {

/// Index of an operation in the template under construction.
using OpId = std::uint32_t;

/// Adds a template to the trace that its operations refer to, unless an equal one is there, and returns its index.
std::uint32_t add_template(Trace& trace, StepTemplate made);

/// Builds one StepTemplate. Works, tensor names and finished templates are interned in the trace.
/// Dependencies of an operation are passed when it is added, so they always point backwards; repeated ones
/// count once.
class StepBuilder {
 public:
  StepBuilder(Trace& trace, std::string name);

  OpId matrix(const Work& work, const std::vector<OpId>& after, const Operand& makes = {});
  OpId vector(const Work& work, const std::vector<OpId>& after, const Operand& makes = {});
  OpId reduce(Axis axis, const Work& work, const std::vector<OpId>& after, const Operand& makes = {});
  OpId send(Axis axis, std::uint32_t peer, std::uint32_t channel, Bytes bytes, const std::vector<OpId>& after,
            const Operand& carries = {}, MatchScope scope = MatchScope::step);
  OpId receive(Axis axis, std::uint32_t peer, std::uint32_t channel, Bytes bytes,
               const std::vector<OpId>& after, const Operand& carries = {},
               MatchScope scope = MatchScope::step);
  /// To each of `peers`, which all receive it on the channel.
  OpId multicast(Axis axis, const std::vector<std::uint32_t>& peers, std::uint32_t channel, Bytes bytes,
                 const std::vector<OpId>& after, const Operand& carries = {});
  OpId allocate(MemoryClass memory_class, Bytes bytes, const std::vector<OpId>& after,
                const Operand& holds = {});
  /// Also waits for the users() of what the meaning of `held` discards.
  OpId free(MemoryClass memory_class, Bytes bytes, const std::vector<OpId>& after, const Operand& held = {});
  /// Marks an operation as one that later steps do not wait for.
  void detach(OpId op) { template_.ops[op].detached = true; }
  /// Marks a message (either end) as one that is used as it comes in.
  void stream(OpId op) { template_.ops[op].streamed = true; }
  /// Marks a send or multicast as one that follows the streamed receives among its dependencies, which are as large.
  void follow(OpId op) { template_.ops[op].follows = true; }

  /// The operations so far that read, write, carry or discard any of `views`: what changes or discards them comes
  /// after all of these.
  std::vector<OpId> users(const Views& views) const { return uses_.users(views); }

  /// A channel number not used before in this template.
  std::uint32_t new_channel() { return new_channels(1); }
  /// The first of `count` consecutive ones.
  std::uint32_t new_channels(std::uint32_t count);
  std::uint32_t tensor(const std::string& name, TensorScope scope = TensorScope::activation);
  std::uint32_t meaning(Meaning meaning);
  Trace& trace() { return trace_; }
  std::size_t size() const { return template_.ops.size(); }

  /// Adds the template to the trace, unless an equal one is there, and returns its index. The builder is
  /// empty afterwards and may build another template of the same name.
  std::uint32_t finish() { return add_template(trace_, take()); }
  /// The same, but leaves the template to the caller.
  StepTemplate take();

 private:
  OpId add(Op op, const std::vector<OpId>& after);
  OpId compute(OpKind kind, Axis axis, const Work& work, const std::vector<OpId>& after,
               const Operand& makes);
  OpId message(OpKind kind, Axis axis, std::uint32_t peer, std::uint32_t channel, Bytes bytes,
               const std::vector<OpId>& after, const Operand& carries, MatchScope scope);
  OpId memory(OpKind kind, MemoryClass memory_class, Bytes bytes, const std::vector<OpId>& after,
              const Operand& what);
  std::uint32_t intern(const Work& work);
  void record_uses(OpId id, const Op& op);

  Trace& trace_;
  StepTemplate template_;
  UseIndex uses_;
  std::uint32_t next_channel_ = 0;
};

}  // namespace wafersim::workloads

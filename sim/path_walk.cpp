// The critical path from the chain that is kept of it.
#include <algorithm>
#include <array>

#include "base/error.h"
#include "sim/path_recorder.h"
#include "sim/replicas.h"

namespace wafersim::sim {
namespace {

/// A part of a node, from `from` to the end of `segment`; nothing without cycles.
void add_backwards(std::vector<PathSegment>& segments, PathSegment segment, PathKind kind, Cycle from) {
  if (segment.to == from) return;
  segment.kind = kind;
  segment.from = from;
  segments.push_back(segment);
}

/// What a node stands for, that starts at `from`, the last segment first.
void add_backwards(std::vector<PathSegment>& segments, const PathNode& node, Cycle from) {
  PathSegment segment;
  segment.to = node.to;
  segment.axis = node.axis;
  segment.tile = node.tile;
  const Cycle first_end = from + node.number, second_end = first_end + node.link;
  if (!is_operation(node.kind)) {
    segment.destination = node.other;
    if (node.parts) {
      add_backwards(segments, segment, PathKind::wire, second_end);
      segment.to = second_end;
      add_backwards(segments, segment, PathKind::injection_room, first_end);
      segment.to = first_end;
      return add_backwards(segments, segment, node.kind, from);
    }
    if (is_at_link(node.kind)) segment.link = static_cast<topology::LinkId>(node.number);
    if (node.kind == PathKind::wire) segment.router_cycles = node.number;
    segment.link_cycles = node.link;
    return add_backwards(segments, segment, node.kind, from);
  }
  segment.step = node.other;
  if (node.parts) {
    segment.computed = node.number;
    add_backwards(segments, segment, PathKind::memory_wait, second_end);
    segment.to = second_end;
    add_backwards(segments, segment, PathKind::memory_stall, first_end);
    segment.to = first_end;
    segment.computed = 0;
  }
  segment.operations = node.parts ? 1 : static_cast<std::uint32_t>(node.number);
  add_backwards(segments, segment, node.kind, from);
}

/// Operations of a step one after the other become one segment: which of them lie in one node depends on who
/// else held it.
void join_operations(std::vector<PathSegment>& segments) {
  std::size_t joined = 0;
  for (const PathSegment& segment : segments) {
    PathSegment* const last = joined == 0 ? nullptr : &segments[joined - 1];
    if (last != nullptr && is_operation(segment.kind) && last->kind == segment.kind &&
        last->axis == segment.axis && last->tile == segment.tile && last->step == segment.step) {
      last->to = segment.to;
      last->operations += segment.operations;
    } else {
      segments[joined++] = segment;
    }
  }
  segments.resize(joined);
}

/// The path has no gaps.
void check(const std::vector<PathSegment>& segments, Cycle end) {
  Cycle at = 0;
  for (const PathSegment& segment : segments) {
    require_invariant(segment.from == at && segment.to > at, "the critical path has gaps");
    at = segment.to;
  }
  require_invariant(at == end, "the critical path is not as long as the run");
}

}  // namespace

const char* to_string(PathKind kind) {
  constexpr std::array<const char*, kPathKinds> kNames = {
      "matrix", "vector",          "reduce",         "memory_stall", "memory_wait", "overhead",
      "wire",   "injection_queue", "injection_room", "link_queue",   "link_room",   "ejection_queue"};
  return kNames.at(static_cast<std::size_t>(kind));
}

PathMeasurement PathRecorder::take(Cycle end) const {
  PathMeasurement result;
  result.complete = !tree_.full();
  if (!result.complete) return result;
  require_invariant(last_.to == end, "the critical path is not as long as the run");
  std::size_t most = 0;
  walk([&most](const PathNode& node, const Elsewhere& /*where*/) { most += node.parts ? 3 : 1; });
  result.segments.reserve(most);
  walk([&](const PathNode& node, const Elsewhere& where) { add_stretch(result.segments, node, where); });
  std::reverse(result.segments.begin(), result.segments.end());
  check(result.segments, end);
  join_operations(result.segments);
  return result;
}

/// Calls `visit` with each node of the path and where it stands for, the last one first.
template <class Visit>
void PathRecorder::walk(const Visit& visit) const {
  Elsewhere where;
  for (std::uint32_t index = last_.node; index != kNil;) {
    const PathNode& node = tree_[index];
    index = node.parent;
    switch (node.mark) {
      case PathMark::none:
        visit(node, where);
        break;
      case PathMark::period:
        break;
      case PathMark::repetition:
        index = walk_repetitions(node, where, visit);
        break;
      case PathMark::replica:
        where.moved = &replicas_[node.tile];
        break;
    }
  }
}

/// From the last repetition back to the first one. Returns where the chain goes on before them.
template <class Visit>
std::uint32_t PathRecorder::walk_repetitions(const PathNode& mark, Elsewhere where, const Visit& visit) const {
  const Period& period = periods_[mark.tile];
  std::size_t end = mark.link;
  where.period = &period;
  for (where.repetitions = mark.number; where.repetitions != 0; --where.repetitions) {
    std::uint32_t index = period.ends[end].node;
    for (; index != kNil && tree_[index].mark == PathMark::none; index = tree_[index].parent) visit(tree_[index], where);
    const bool begins = index != kNil && tree_[index].mark == PathMark::period && tree_[index].tile == mark.tile;
    require_invariant(begins, "a chain of the critical path does not begin where its period does");
    end = tree_[index].link;
  }
  return period.ends[end].node;
}

/// What was simulated once stands for itself and for its repetitions: those of a period, and the same in other replicas.
void PathRecorder::add_stretch(std::vector<PathSegment>& segments, const PathNode& node, const Elsewhere& where) const {
  const std::size_t before = segments.size();
  add_backwards(segments, node, node.parent == kNil ? 0 : tree_[node.parent].to);
  for (std::size_t i = before; i < segments.size(); ++i) {
    PathSegment& segment = segments[i];
    if (where.period != nullptr) {
      segment.from += where.period->length * where.repetitions;
      segment.to += where.period->length * where.repetitions;
      if (is_core(segment.kind)) {
        segment.step += static_cast<std::uint32_t>(where.period->steps[segment.tile] * where.repetitions);
      }
    }
    if (where.moved == nullptr) continue;
    if (is_at_link(segment.kind)) segment.link = moved_link(segment.link, *where.moved);
    segment.tile = (*where.moved)[segment.tile];
    if (segment.destination != kNoTile) segment.destination = (*where.moved)[segment.destination];
  }
}

}  // namespace wafersim::sim

#include "sim/recurrence.h"

#include <xxhash.h>

#include <algorithm>
#include <limits>

namespace wafersim::sim {
namespace {

/// Moments that are kept whole: the latest, and the starts of the latest iterations. Of all others the hash is kept; when one
/// comes again, its moment is kept until it should come once more.
constexpr std::ptrdiff_t kRecent = 4;
constexpr std::ptrdiff_t kStarts = 2;
/// An event takes the time of writing some fifty bytes of state: looking costs a few percent at most, and less and less where
/// nothing recurs.
constexpr std::uint64_t kBytesPerEvent = 1;
constexpr std::uint64_t kPatience = 32;
/// Of a tile, before the first look.
constexpr std::uint64_t kUsualBytes = 1500;
/// States of more tiles are not looked at: those that are kept would fill the memory.
constexpr std::size_t kMostTiles = 100'000;
constexpr std::uint64_t kUnlimited = std::numeric_limits<std::uint64_t>::max();

std::array<std::uint64_t, 2> hash_of(const std::vector<char>& bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

StepTimes later(const StepTimes& times, Cycle by) {
  return {times.opened + by, times.first_compute == kNever ? kNever : times.first_compute + by, times.done + by};
}

}  // namespace

Recurrence::Recurrence(const RecurrenceParts& parts, std::vector<Tile*> tiles, bool eager)
    : parts_(parts), eager_(eager), tiles_(std::move(tiles)) {
  for (Tile* tile : tiles_) {
    if (!tile->used()) continue;
    if (place_.size() <= tile->id()) place_.resize(std::size_t{tile->id()} + 1);
    place_[tile->id()] = static_cast<std::uint32_t>(used_.size());
    used_.push_back(tile);
  }
  choose_anchor();
}

Recurrence::~Recurrence() {
  if (recording_) parts_.recorders.drop_period();
}

/// The kind of step that the first tile does most often.
void Recurrence::choose_anchor() {
  bytes_at_look_ = tiles_.size() * kUsualBytes;
  if (used_.empty() || tiles_.size() > kMostTiles) return;
  const workloads::TileBinding& binding = used_.front()->trace_core()->binding();
  const workloads::Program& program = parts_.trace.trace().programs[binding.program];
  std::map<std::tuple<std::uint32_t, workloads::StepKind, workloads::Pass, std::int32_t>, std::size_t> counts;
  std::size_t most = 2;  // a third time is the first that can be skipped
  for (const workloads::Step& step : program.steps) {
    if (++counts[kind_of(step)] <= most) continue;
    most = counts[kind_of(step)];
    anchor_step_ = &step;
    anchor_ = &binding;
  }
}

bool Recurrence::step_done(const workloads::TileBinding& binding, std::uint32_t index, const StepTimes& times) {
  if (!moments_.empty()) done_.push_back({&binding, index, times});
  if (&binding != anchor_) return false;
  if (kind_of(parts_.trace.trace().programs[binding.program].steps[index]) != kind_of(*anchor_step_)) return false;
  if (recording_ ? parts_.calendar.current() != recording_->end : !may_look()) return false;
  anchored_ = index;
  return true;
}

/// Enough has happened since the last look for another one to be cheap.
bool Recurrence::may_look() const {
  const std::uint64_t price = eager_ ? 0 : bytes_at_look_ * (1 + misses_ / kPatience);
  return (parts_.calendar.events() - events_at_look_) * kBytesPerEvent >= price;
}

Recurrence::Moment Recurrence::moment() {
  const workloads::Step& step = parts_.trace.trace().programs[anchor_->program].steps[anchored_];
  Moment now;
  now.at = parts_.calendar.current();
  now.microbatch = std::max(step.microbatch, 0);
  now.iteration = step.iteration;
  now.mixed_arrivals = parts_.shared.mixed_arrivals;
  now.state = parts_.state.relative(tiles_, now.microbatch, now.iteration, parts_.recorders.any());
  now.hash = hash_of(now.state.bytes);
  now.positions.reserve(used_.size());
  for (const Tile* tile : used_) now.positions.push_back({tile->trace_core()->next_step(), tile->trace_core()->oldest_step()});
  now.done = done_.size();
  now.first_of_iteration =
      parts_.trace.trace().iterations > 2 && std::exchange(last_iteration_, now.iteration) != now.iteration;
  return now;
}

void Recurrence::look() {
  Moment now = moment();
  events_at_look_ = parts_.calendar.events();
  bytes_at_look_ = now.state.bytes.size();
  if (recording_) return end_recording(now);
  ++looks_;
  ++misses_;
  for (auto before = moments_.rbegin(); before != moments_.rend(); ++before) {
    if (before->hash != now.hash || before->state.bytes != now.state.bytes) continue;
    seen_again_ = true;
    misses_ = 0;
    const std::uint64_t periods = periods_ahead(*before, now);
    if (periods == 0) continue;
    if (!parts_.recorders.any()) return skip_from(*before, now, periods);
    if (periods == 1) continue;
    const Cycle period = now.at - before->at;
    recording_ = Recording{now.at + period, periods - 1};
    parts_.recorders.begin_period(period, periods - 1, now.state.named);
    break;
  }
  remember(std::move(now));
}

/// The period that begins with the latest moment is over.
void Recurrence::end_recording(const Moment& now) {
  const Moment& before = moments_.back();
  require_invariant(before.state.bytes == now.state.bytes && periods_ahead(before, now) >= recording_->periods,
                    "what repeats itself goes on in another way");
  const std::uint64_t periods = recording_->periods;
  recording_.reset();
  if (parts_.recorders.end_period(move(before, now, 1).shift, now.state.named)) return skip_from(before, now, periods);
  too_much_recorded_ = true;
  anchor_ = nullptr;
  moments_.clear();
  done_ = {};
}

void Recurrence::skip_from(const Moment& before, const Moment& now, std::uint64_t periods) {
  skip(before, now, periods);
  // Later moments would lie in what was skipped; starts of iterations are still behind.
  moments_.remove_if([](const Moment& moment) { return !moment.first_of_iteration; });
  forget_log();
}

void Recurrence::remember(Moment moment) {
  const bool first = moment.first_of_iteration;
  const auto is_kept = [this](const Moment& other) { return other.kept_until > looks_; };
  const auto [last, fresh] = looks_by_hash_.try_emplace(moment.hash, looks_);
  if (!fresh && std::none_of(moments_.begin(), moments_.end(), is_kept)) {
    moment.kept_until = looks_ + (looks_ - last->second) + 1;
  }
  last->second = looks_;
  moments_.push_back(std::move(moment));
  const auto like = [&](const Moment& other) { return other.first_of_iteration == first && !is_kept(other); };
  while (std::count_if(moments_.begin(), moments_.end(), like) > (first ? kStarts : kRecent)) {
    moments_.erase(std::find_if(moments_.begin(), moments_.end(), like));
  }
  forget_log();
}

void Recurrence::forget_log() {
  const std::size_t unused = moments_.empty() ? done_.size() : moments_.front().done;
  done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(unused));
  for (Moment& moment : moments_) moment.done -= unused;
}

/// How many more periods all programs have ahead.
std::uint64_t Recurrence::periods_ahead(const Moment& from, const Moment& to) const {
  const std::int32_t iterations = to.iteration - from.iteration;
  if (iterations != 0 && from.mixed_arrivals != to.mixed_arrivals) return 0;
  std::uint64_t periods = kUnlimited;
  if (parts_.calendar.limit() != kNever) periods = (parts_.calendar.limit() - to.at) / (to.at - from.at);
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t> known;
  bool advances = false;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    const std::uint32_t program = used_[i]->trace_core()->binding().program;
    const ProgramPosition& a = from.positions[i];
    const ProgramPosition& b = to.positions[i];
    advances = advances || a.next != b.next;
    const auto [at, fresh] = known.try_emplace({program, a.next, a.oldest, b.next, b.oldest}, 0);
    if (fresh) {
      const workloads::Program& steps = parts_.trace.trace().programs[program];
      at->second = periods_ahead({steps, steps, a, b, to.microbatch - from.microbatch, iterations});
    }
    periods = std::min(periods, at->second);
  }
  return advances ? periods : 0;
}

/// The period saw the steps that it opened and the one that it did not open yet; those of each later period must be the same.
std::uint64_t Recurrence::periods_ahead(const ProgramStretch& stretch) {
  const std::uint32_t length = stretch.length();
  if (length == 0) return kUnlimited;
  std::uint32_t equal = 0;
  while (stretch.to.next + equal < stretch.program.steps.size() && stretch.alike(stretch.from.next + equal)) ++equal;
  return equal == 0 ? 0 : (equal - 1) / length;
}

std::uint64_t Recurrence::operations() const {
  std::uint64_t total = 0;
  for (const Tile* tile : used_) total += tile->trace_core()->operations();
  return total;
}

Recurrence::Move Recurrence::move(const Moment& from, const Moment& to, std::uint64_t periods) const {
  Move move;
  move.shift.cycles = (to.at - from.at) * periods;
  const auto times = static_cast<std::int64_t>(periods);
  move.shift.microbatches = static_cast<std::int32_t>((to.microbatch - from.microbatch) * times);
  move.shift.iterations = static_cast<std::int32_t>((to.iteration - from.iteration) * times);
  move.counters.resize(to.state.counters.size());
  for (std::size_t i = 0; i < move.counters.size(); ++i) {
    move.counters[i] = (to.state.counters[i] - from.state.counters[i]) * periods;
  }
  move.steps.resize(place_.size());
  for (std::size_t i = 0; i < used_.size(); ++i) {
    move.steps[used_[i]->id()] = static_cast<std::uint32_t>((to.positions[i].next - from.positions[i].next) * periods);
  }
  move.shift.counters = move.counters;
  move.shift.steps = move.steps;
  return move;
}

void Recurrence::skip(const Moment& from, const Moment& to, std::uint64_t periods) {
  const Cycle period = to.at - from.at;
  const Move move = this->move(from, to, periods);
  const std::uint64_t before = operations();
  const ExactState state = parts_.state.save(tiles_);
  parts_.recorders.renumber(state.named, parts_.state.load(state.bytes, to.at, tiles_, move.shift), move.shift.cycles);
  const std::uint64_t skipped = operations() - before;
  parts_.shared.operations_done += skipped;
  skipped_operations_ += skipped;
  replay(from, to, periods);
  last_iteration_ = to.iteration + move.shift.iterations;
  if (move.shift.cycles > longest_) {
    longest_ = move.shift.cycles;
    period_ = period;
  }
  periods_ += periods;
  skipped_cycles_ += move.shift.cycles;
}

/// Records the steps of the periods skipped.
void Recurrence::replay(const Moment& from, const Moment& to, std::uint64_t periods) {
  const std::size_t first = from.done;
  const std::size_t end = done_.size();
  const bool keep = std::any_of(moments_.begin(), moments_.end(), [](const Moment& m) { return m.first_of_iteration; });
  for (std::uint64_t k = 1; k <= periods; ++k) {
    for (std::size_t i = first; i < end; ++i) {
      Done done = done_[i];
      const std::size_t place = place_[done.binding->tile];
      done.index += static_cast<std::uint32_t>((to.positions[place].next - from.positions[place].next) * k);
      done.times = later(done.times, (to.at - from.at) * k);
      parts_.recorder.record(*done.binding, done.index,
                             parts_.trace.trace().programs[done.binding->program].steps[done.index], done.times);
      if (keep) done_.push_back(done);
    }
  }
}

}  // namespace wafersim::sim

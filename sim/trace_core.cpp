#include "sim/trace_core.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "base/error.h"
#include "sim/fleet.h"
#include "sim/path_recorder.h"

namespace wafersim::sim {

using workloads::OpKind;

namespace {

/// In the place of the dependencies left: what a streamed receive has received is there.
constexpr std::uint16_t kTaken = std::numeric_limits<std::uint16_t>::max();

}  // namespace

TraceCore::TraceCore(sc_core::sc_module_name name, Calendar& calendar, std::pmr::memory_resource& tables,
                     const CompiledTrace& trace,
                     const workloads::TileBinding& binding, StepRecorder& recorder, SharedByCores& shared)
    : Core(name, trace.trace().layouts.at(binding.layout) != workloads::MemoryLayout{}),
      calendar_(calendar),
      shared_(shared),
      account_(binding.stage, trace.trace().pipeline_stages > 1),
      binding_(binding),
      trace_(trace),
      program_(trace.trace().programs.at(binding.program)),
      uses_dram_(dram.has_value()),
      tables_(tables),
      recorder_(recorder),
      result_there_(program_.steps.size(), false) {
  add_to_fleet(calendar, *this, Rank::core);
  calendar.evaluate_at_start(*this);
}

void TraceCore::end_of_elaboration() {
  nic_ = nic.operator->();
  sram_ = sram.operator->();
  nic_lines_ = nic_->hot_lines();
  sram_lines_ = sram_->hot_lines();
}

void TraceCore::send_done(std::uint64_t token) {
  const OpRef ref = OpRef::of(token);
  prefetch_successors(ref);
  completed_.push_back(ref);
  if (path_ != nullptr) [[unlikely]] path_->completed(token);
  calendar_.request_evaluation(*this);
}

void TraceCore::received(std::uint64_t token, const Arrival& arrival) {
  const OpRef ref = OpRef::of(token);
  prefetch_successors(ref);
  completed_.push_back(ref);
  if (path_ != nullptr) [[unlikely]] path_->completed(token);
  if (slots_[ref.slot].code->ops[ref.op].streamed) [[unlikely]] slots_[ref.slot].waiting[ref.op] = kTaken;
  // Messages of background steps count only when nothing in the foreground is open.
  if (foreground_open_ == 0 || !slots_[ref.slot].background) {
    shared_.mixed_arrivals += account_.arrived(arrival) ? 1U : 0U;
  }
  calendar_.request_evaluation(*this);
}

void TraceCore::dram_done(std::uint32_t engine) {
  running_[engine].dram_pending = false;
  finish_part(engine);
}

void TraceCore::update(unsigned /*kind*/, std::uint32_t payload) { check_engine(payload); }

/// The operation ends at the first e with e - start >= compute cycles and (e - start) - NIC-busy cycles >= SRAM cycles. NIC
/// accesses that begin meanwhile only add to what is missing, so the check is repeated until it holds.
void TraceCore::check_engine(std::size_t engine) {
  Running& running = running_[engine];
  const Cycle now = calendar_.now();
  const Cycle nic_busy = running.sram_cycles == 0 ? 0 : sram_->nic_busy_before_now() - running.nic_busy_at_start;
  const Cycle had = now - running.start - nic_busy;
  if (had < running.sram_cycles) {
    calendar_.post(*this, now + running.sram_cycles - had, 0, static_cast<std::uint32_t>(engine));
    return;
  }
  running.sram_pending = false;
  finish_part(engine);
}

void TraceCore::finish_part(std::size_t engine) {
  const Running& running = running_[engine];
  if (running.sram_pending || running.dram_pending) return;
  completed_.push_back(running.op);
  calendar_.request_evaluation(*this);
}

HotLines TraceCore::hot_lines() const {
  return {reinterpret_cast<const char*>(static_cast<const Client*>(this)), kHotBytes};
}

void TraceCore::prefetch(unsigned kind, std::uint32_t engine) const {
  if (kind == Event::kEvaluate) return;
  nic_lines_.prefetch();
  sram_lines_.prefetch();
  __builtin_prefetch(slots_[running_[engine].op.slot].code);
}

void TraceCore::prefetch_more(unsigned kind, std::uint32_t engine) const {
  if (kind == Event::kEvaluate) return;
  const OpRef ref = running_[engine].op;
  const OpenStep& open = slots_[ref.slot];
  __builtin_prefetch(&open.code->ops[ref.op]);
  __builtin_prefetch(&open.waiting[ref.op]);
  nic_->prefetch_call();
}

void TraceCore::prefetch_successors(OpRef ref) const {
  const OpenStep& open = slots_[ref.slot];
  const CompiledOp& op = open.code->ops[ref.op];
  if (op.successor_count == 0) return;
  __builtin_prefetch(open.waiting.data() + op.next);
  __builtin_prefetch(open.code->successors.data() + op.first_successor);
  const char* const next = reinterpret_cast<const char*>(open.code->ops.data() + op.next);
  __builtin_prefetch(next);
  __builtin_prefetch(next + 64);  // which it may reach into, or else the one behind it
}

void TraceCore::prefetch_evaluation() const {
  nic_lines_.prefetch();
  for (const OpRef ref : completed_) __builtin_prefetch(&slots_[ref.slot].code->ops[ref.op]);
}

void TraceCore::prefetch_evaluation_more() const {
  for (const OpRef ref : completed_) prefetch_successors(ref);
}

void TraceCore::evaluate() {
  account_.settle(calendar_.current());
  stop_engines();
  // In program order, whatever the order of this cycle's updates.
  std::sort(completed_.begin(), completed_.end(), [this](const OpRef& a, const OpRef& b) {
    return std::tie(slots_[a.slot].step, a.op) < std::tie(slots_[b.slot].step, b.op);
  });
  shared_.completing.assign(completed_.begin(), completed_.end());
  completed_.clear();  // what completes meanwhile belongs to the next evaluation
  complete_all(shared_.completing);
  if (results_changed_ || may_issue_) {
    do {
      open_steps();
      // Operations of zero cycles may have completed; look again until nothing more can issue.
    } while (issue_matrix() || issue_vector());
    may_issue_ = false;
  }
  if (path_ != nullptr) [[unlikely]] path_->evaluated();
}

void TraceCore::stop_engines() {
  for (std::size_t engine = 0; engine < kEngines; ++engine) {
    Running& running = running_[engine];
    if (!running.active || running.sram_pending || running.dram_pending) continue;
    const Cycle now = calendar_.current();
    running.active = false;
    busy_[engine] += now - running.start;
    if (activity_ != nullptr || operation_sink_ != nullptr) [[unlikely]] record_operation(running, now);
    if (path_ != nullptr) [[unlikely]] record_path(static_cast<Engine>(engine), running, now);
    account_.engine_stopped(static_cast<Engine>(engine), now);
    may_issue_ = true;
  }
}

void TraceCore::complete_all(std::span<const OpRef> list) {
  for (const OpRef ref : list) complete(ref);
  std::vector<OpRef>& instant = shared_.instant;
  for (std::size_t i = 0; i < instant.size(); ++i) complete(OpRef{instant[i]});
  instant.clear();
}

bool TraceCore::may_open(const workloads::Step& step) const {
  for (std::uint32_t i = 0; i < step.wait_count; ++i) {
    if (!result_there_[program_.waits[step.first_wait + i]]) return false;
  }
  return true;
}

void TraceCore::open_steps() {
  if (!results_changed_) return;
  results_changed_ = false;
  while (next_step_ < program_.steps.size() && may_open(program_.steps[next_step_])) open_step();
}

void TraceCore::open_step() {
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back(&tables_);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  OpenStep& open = slots_[slot];
  open.step = next_step_++;
  restore(open);
  open.operations_left = static_cast<std::uint32_t>(open.code->source->ops.size());
  open.results_left = open.code->result_count;
  open.opened = calendar_.now();
  open.first_compute = kNever;
  open.cursor = {};
  open.waiting.assign(open.code->dependency_counts.begin(), open.code->dependency_counts.end());
  order_.push_back(slot);
  recorder_.step_opened(binding_, open.step);
  may_issue_ = true;
  if (!open.background) ++foreground_open_;
  if (activity_ != nullptr) record_step();
  if (path_ != nullptr) [[unlikely]] {
    const workloads::Step& step = step_of(open);
    path_->opening(std::span(program_.waits).subspan(step.first_wait, step.wait_count), calendar_.now());
    if (open.results_left == 0) path_->result(open.step);
  }
  if (open.results_left == 0) result_there_[open.step] = true;
  if (open.operations_left == 0) return close_step(slot);
  for (const std::uint32_t op : open.code->roots) became_ready({slot, op});
  complete_all({});
}

void TraceCore::close_step(std::uint32_t slot) {
  OpenStep& open = slots_[slot];
  recorder_.step_done(binding_, open.step, step_of(open), {open.opened, open.first_compute, calendar_.now()});
  if (path_ != nullptr) [[unlikely]] path_->step_closed(calendar_.now());
  if (!open.background) --foreground_open_;
  order_.erase(std::find(order_.begin(), order_.end(), slot));
  free_slots_.push_back(slot);
  if (activity_ != nullptr) record_step();
}

/// The oldest open step in the foreground, else the oldest.
void TraceCore::record_step() {
  if (order_.empty()) return activity_->between_steps();
  const auto foreground = std::find_if(order_.begin(), order_.end(), [this](std::uint32_t slot) { return !slots_[slot].background; });
  const workloads::Step& step = step_of(slots_[foreground == order_.end() ? order_.front() : *foreground]);
  activity_->at_step(step.kind, step.pass);
}

void TraceCore::record_operation(const Running& running, Cycle end) const {
  const OpenStep& open = slots_[running.op.slot];
  const workloads::Op& op = open.code->source->ops[running.op.op];
  if (activity_ != nullptr) activity_->operation(op.kind, op.work, end - running.start);
  if (operation_sink_ != nullptr) (*operation_sink_)({binding_.tile, open.step, op.kind, op.axis, running.start, end});
}

void TraceCore::record_path(Engine engine, const Running& running, Cycle end) {
  const OpenStep& open = slots_[running.op.slot];
  const CompiledOp& op = open.code->ops[running.op.op];
  path_->engine_stopped(engine, {running.op.token(), op.kind, op.axis, open.step}, end);
}

void TraceCore::became_ready(OpRef ref) {
  const OpenStep& open = slots_[ref.slot];
  const CompiledOp& op = open.code->ops[ref.op];
  const OpKind kind = op.kind;
  if (kind == OpKind::matrix || kind == OpKind::vector || kind == OpKind::reduce) {
    may_issue_ = true;  // matrix and vector operations in program order
    if (kind == OpKind::reduce) reductions_.push({open.step, ref});
    if (path_ != nullptr) [[unlikely]] path_->became_ready(ref.token());
    return;
  }
  if (path_ != nullptr) [[unlikely]] path_->sending();
  const auto key = [&] { return open.keys[static_cast<std::size_t>(op.scope)] ^ op.key; };
  const auto request = [&](TileId destination) {
    return SendRequest{destination, key(), op.bytes, op.axis, op.tensor, ref.token(), account_.last_wait(), binding_.stage,
                       op.streamed};
  };
  switch (kind) {
    case OpKind::send:
      if (op.forwards) [[unlikely]] {
        post_forward(ref, request(kNoTile));
      } else {
        nic_->post_send(request(peer(op.peer)));
      }
      break;
    case OpKind::multicast:
      post_forward(ref, request(kNoTile));
      break;
    case OpKind::receive:
      if (nic_->post_receive({peer(op.peer), key(), op.bytes, ref.token()})) {
        completes_at_once(ref);
        if (op.streamed) [[unlikely]] slots_[ref.slot].waiting[ref.op] = kTaken;
      }
      break;
    case OpKind::allocate:
      sram_->allocate(op.memory_class, op.bytes);
      completes_at_once(ref);
      break;
    case OpKind::free:
      sram_->free(op.memory_class, op.bytes);
      completes_at_once(ref);
      break;
    default:
      break;
  }
}

void TraceCore::completes_at_once(OpRef ref) {
  shared_.instant.push_back(ref);
  if (path_ != nullptr) [[unlikely]] path_->instant(ref.token());
}

/// Sends to one or more peers, after what the operation follows as far as it is still coming in.
[[gnu::noinline]] void TraceCore::post_forward(OpRef ref, const SendRequest& request) {
  const OpenStep& open = slots_[ref.slot];
  const workloads::StepTemplate& source = *open.code->source;
  const workloads::Op& op = source.ops[ref.op];
  std::vector<TileId> receivers;
  for (const std::uint32_t index : workloads::peers_of(source, op)) receivers.push_back(peer(index));
  std::vector<StreamSource> follows;
  for (std::uint32_t i = 0; i < op.dependency_count; ++i) {
    const std::uint32_t before = source.dependencies[op.first_dependency + i];
    if (!workloads::follows(op, source.ops[before]) || open.waiting[before] == kTaken) continue;
    const CompiledOp& receive = open.code->ops[before];
    follows.push_back({peer(receive.peer), open.keys[static_cast<std::size_t>(receive.scope)] ^ receive.key});
  }
  nic_->post_forward(request, receivers, follows);
}

TileId TraceCore::peer(std::uint32_t index) {
  KnownPeer& known = known_peers_[index % known_peers_.size()];
  if (known.index != index) known = {index, trace_.trace().peer(binding_, index)};
  return known.tile;
}

void TraceCore::complete(OpRef ref) {
  OpenStep& open = slots_[ref.slot];
  const CompiledTemplate& code = *open.code;
  ++operations_;
  ++shared_.operations_done;
  if (path_ != nullptr) [[unlikely]] path_->completing(ref.token());
  const CompiledOp& op = code.ops[ref.op];
  if (!op.detached && --open.results_left == 0) {
    result_there_[open.step] = true;
    results_changed_ = true;
    if (path_ != nullptr) [[unlikely]] path_->result(open.step);
  }
  for (std::uint32_t i = 0; i < op.successor_count; ++i) {
    const std::uint32_t next = code.successors[op.first_successor + i];
    if (--open.waiting[next] == 0) became_ready({ref.slot, next});
  }
  if (--open.operations_left == 0) close_step(ref.slot);
}

/// The next operation of an engine in program order, over the open steps.
std::optional<OpRef> TraceCore::next_in_order(Engine engine) const {
  const auto e = static_cast<std::size_t>(engine);
  for (const std::uint32_t slot : order_) {
    const OpenStep& open = slots_[slot];
    const std::vector<std::uint32_t>& list = open.code->in_order[e];
    if (open.cursor[e] != list.size()) return OpRef{slot, list[open.cursor[e]]};
  }
  return std::nullopt;
}

bool TraceCore::issue_matrix() {
  if (running_[static_cast<std::size_t>(Engine::matrix)].active) return false;
  const std::optional<OpRef> next = next_in_order(Engine::matrix);
  if (!next || slots_[next->slot].waiting[next->op] != 0) return false;
  ++slots_[next->slot].cursor[static_cast<std::size_t>(Engine::matrix)];
  start(Engine::matrix, *next);
  return true;
}

/// Vector operations issue in program order; a reduction goes before them when it is older in the program or they are not
/// ready.
bool TraceCore::issue_vector() {
  if (running_[static_cast<std::size_t>(Engine::vector)].active) return false;
  std::optional<OpRef> next = next_in_order(Engine::vector);
  if (next && slots_[next->slot].waiting[next->op] != 0) next.reset();
  if (!reductions_.empty()) {
    const ReadyReduction oldest = reductions_.top();
    if (!next || std::tie(oldest.step, oldest.op.op) < std::tie(slots_[next->slot].step, next->op)) {
      reductions_.pop();
      start(Engine::vector, oldest.op);
      return true;
    }
  }
  if (!next) return false;
  ++slots_[next->slot].cursor[static_cast<std::size_t>(Engine::vector)];
  start(Engine::vector, *next);
  return true;
}

Bytes TraceCore::through_dram(const workloads::Work& work) const {
  Bytes total = 0;
  for (std::size_t i = 0; i < work.class_bytes.size(); ++i) {
    if (work.class_bytes[i] == 0) continue;
    total += sram_->through_dram(static_cast<workloads::MemoryClass>(i), work.class_bytes[i]);
  }
  return total;
}

void TraceCore::start(Engine engine, OpRef ref) {
  const CompiledTemplate& code = *slots_[ref.slot].code;
  const Cycle compute = code.ops[ref.op].compute_cycles;
  const Cycle sram_cycles = code.ops[ref.op].sram_cycles;
  Bytes dram_bytes = 0;
  if (uses_dram_) {
    dram_bytes = through_dram(trace_.trace().works[code.source->ops[ref.op].work]);
    dram_bytes_ += dram_bytes;
  }
  if (compute == 0 && sram_cycles == 0 && dram_bytes == 0) {
    if (path_ != nullptr) [[unlikely]] path_->engine_passed(engine, ref.token(), calendar_.now());
    complete_all({&ref, 1});
    return;
  }
  const Cycle now = calendar_.now();
  const auto e = static_cast<std::size_t>(engine);
  Cycle& first_compute = slots_[ref.slot].first_compute;
  first_compute = std::min(first_compute, now);
  Running& running = running_[e];
  running = {true, true, dram_bytes != 0, ref, now, sram_cycles, sram_cycles == 0 ? 0 : sram_->nic_busy_before_now()};
  if (path_ != nullptr) [[unlikely]] path_->engine_started(engine, ref.token(), {compute, sram_cycles, dram_bytes}, now);
  account_.engine_started(engine, now, now + compute);
  calendar_.post(*this, now + std::max(compute, sram_cycles), 0, static_cast<std::uint32_t>(e));
  if (dram_bytes != 0) (*dram)->access(binding_.tile, static_cast<std::uint32_t>(e), dram_bytes);
}

std::uint32_t TraceCore::rank_of_slot(std::uint32_t slot) const {
  return static_cast<std::uint32_t>(std::find(order_.begin(), order_.end(), slot) - order_.begin());
}

void TraceCore::restore(OpenStep& open) const {
  require_invariant(open.step < program_.steps.size(), "an open step is not in the program");
  const workloads::Step& step = step_of(open);
  open.code = &trace_.step_template(step.step_template);
  open.background = step.background;
  for (const auto scope : {workloads::MatchScope::step, workloads::MatchScope::microbatch}) {
    open.keys[static_cast<std::size_t>(scope)] = step_key(scope, step);
  }
}

/// Of the steps so far, only open ones may owe their result.
void TraceCore::restore_results() {
  result_there_.assign(program_.steps.size(), false);
  std::fill(result_there_.begin(), result_there_.begin() + static_cast<std::ptrdiff_t>(next_step_), true);
  for (const std::uint32_t slot : order_) result_there_[slots_[slot].step] = slots_[slot].results_left == 0;
}

std::string TraceCore::describe() const {
  if (order_.empty()) return next_step_ == program_.steps.size() ? "program finished" : "between steps";
  return workloads::step_text(trace_.trace(), binding_, static_cast<std::int32_t>(slots_[order_.front()].step));
}

/// Of steps that are over all operations, so nothing has to be counted while they run.
WorkTotals TraceCore::work() const {
  if (finished()) return trace_.program_work(binding_.program);
  std::set<std::pair<std::uint32_t, std::uint32_t>> ready;  // reductions that have not started
  for (auto left = reductions_; !left.empty(); left.pop()) ready.emplace(left.top().step, left.top().op.op);
  const auto has_started = [&ready](const OpenStep& open, std::uint32_t op) {
    if (open.waiting[op] != 0) return false;
    const OpKind kind = open.code->ops[op].kind;
    if (kind == OpKind::reduce) return !ready.contains({open.step, op});
    const auto engine = static_cast<std::size_t>(kind == OpKind::matrix ? Engine::matrix : Engine::vector);
    const std::vector<std::uint32_t>& list = open.code->in_order[engine];
    return open.cursor[engine] == list.size() || op < list[open.cursor[engine]];
  };
  WorkTotals total;
  for (std::uint32_t step = 0; step < next_step_; ++step) total.add(trace_.step_template(program_.steps[step].step_template).work);
  for (const std::uint32_t slot : order_) {
    const OpenStep& open = slots_[slot];
    total -= open.code->work;
    for (std::uint32_t op = 0; op < open.code->ops.size(); ++op) {
      const OpKind kind = open.code->ops[op].kind;
      const bool computes = kind == OpKind::matrix || kind == OpKind::vector || kind == OpKind::reduce;
      if (computes && has_started(open, op)) total.add(kind, trace_.trace().works[open.code->source->ops[op].work]);
    }
  }
  return total;
}

void TraceCore::measure(Cycle end, TileMeasurement& out) {
  account_.finish(end);
  out.cycles = account_.cycles();
  out.matrix_busy = busy_[static_cast<std::size_t>(Engine::matrix)];
  out.vector_busy = busy_[static_cast<std::size_t>(Engine::vector)];
  out.operations = operations_;
  const WorkTotals done = work();
  out.matrix_flops = done.matrix_flops;
  out.vector_flops = done.vector_flops;
  out.core_sram_bytes = done.sram_bytes;
  out.dram_bytes = dram_bytes_;
}

}  // namespace wafersim::sim

#include "sim/cycle_account.h"

#include <algorithm>
#include <tuple>

#include "workloads/message_keys.h"

namespace wafersim::sim {

using workloads::Axis;

Cycle CycleBreakdown::exposed_total() const {
  Cycle total = 0;
  for (const Cycle cycles : exposed) total += cycles;
  return total;
}

bool CycleAccount::arrived(const Arrival& arrival) {
  if (anything_runs()) return false;
  const bool mixed = has_arrival_ && arrival_.source == arrival.source &&
                     workloads::key_parts(arrival_.key).iteration != workloads::key_parts(arrival.key).iteration;
  if (has_arrival_ && std::tie(arrival_.source, arrival_.key) <= std::tie(arrival.source, arrival.key)) return mixed;
  arrival_ = arrival;
  has_arrival_ = true;
  return mixed;
}

void CycleAccount::charge_running(Cycle now) {
  Cycle compute_end = charged_;
  for (std::size_t i = 0; i < kEngines; ++i) {
    if (running_[i]) compute_end = std::max(compute_end, compute_end_[i]);
  }
  compute_end = std::min(compute_end, now);
  cycles_.compute += compute_end - charged_;
  cycles_.memory_stall += now - compute_end;
  tell(CycleKind::compute, charged_, compute_end);
  tell(CycleKind::memory_stall, compute_end, now);
  charged_ = now;
}

void CycleAccount::charge_arrival(Cycle now) {
  has_arrival_ = false;
  const Cycle posted = std::clamp(arrival_.posted, charged_, now);
  charge_unposted(arrival_, posted);
  charge_wait(now, WaitCause::exposed, arrival_.axis);
}

void CycleAccount::charge_unposted(const Arrival& arrival, Cycle until) {
  if (arrival.axis == Axis::pp || arrival.sender_stage != stage_) return charge_wait(until, WaitCause::bubble, Axis::none);
  for (const WaitInterval& wait : arrival.sender_wait) {
    if (wait.to <= charged_ || wait.from >= until) continue;
    charge_wait(wait.from, WaitCause::idle, Axis::none);
    charge_wait(std::min(wait.to, until), wait.cause, wait.axis);
  }
  charge_wait(until, WaitCause::idle, Axis::none);
}

void CycleAccount::charge_wait(Cycle until, WaitCause cause, Axis axis) {
  if (until <= charged_) return;
  const Cycle cycles = until - charged_;
  if (cause == WaitCause::exposed && axis != Axis::none) {
    cycles_.exposed[static_cast<std::size_t>(axis)] += cycles;
    tell(exposed_by(axis), charged_, until);
  } else if (cause == WaitCause::bubble) {
    cycles_.bubble += cycles;
    tell(CycleKind::bubble, charged_, until);
  } else {
    cycles_.idle += cycles;
    tell(CycleKind::idle, charged_, until);
  }
  // For whoever waits for this tile, waiting for the pipeline is bubble.
  const bool pipeline = cause == WaitCause::bubble || axis == Axis::pp;
  remember_wait(until, pipeline ? WaitCause::bubble : cause, pipeline ? Axis::none : axis);
  charged_ = until;
}

void CycleAccount::remember_wait(Cycle until, WaitCause cause, Axis axis) {
  WaitInterval& last = last_wait_.back();
  if (last.to == charged_ && last.cause == cause && last.axis == axis) {
    last.to = until;
    return;
  }
  last_wait_.front() = last;
  last = {charged_, until, cause, axis};
}

void CycleAccount::engine_started(Engine engine, Cycle now, Cycle compute_end) {
  if (anything_runs()) {
    charge_running(now);
  } else {
    // No message ended the wait: what it waited for was the tile's own (a buffer, the DRAM).
    charge_wait(now, !started_ && pipelined_ ? WaitCause::bubble : WaitCause::idle, Axis::none);
  }
  started_ = true;
  running_[static_cast<std::size_t>(engine)] = true;
  compute_end_[static_cast<std::size_t>(engine)] = compute_end;
}

void CycleAccount::engine_stopped(Engine engine, Cycle now) {
  charge_running(now);
  running_[static_cast<std::size_t>(engine)] = false;
}

void CycleAccount::finish(Cycle end) {
  if (anything_runs()) charge_running(end);
  settle(end);
  charge_wait(end, pipelined_ ? WaitCause::bubble : WaitCause::idle, Axis::none);
}

}  // namespace wafersim::sim

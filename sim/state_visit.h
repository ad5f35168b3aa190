#pragma once

#include <algorithm>
#include <tuple>

#include "sim/dram.h"
#include "sim/memory_timeline.h"
#include "sim/nic.h"
#include "sim/router_engine.h"
#include "sim/sram.h"
#include "sim/state_archive.h"
#include "sim/step_recorder.h"
#include "sim/trace_core.h"

/// What the state of each part between two cycles is. Included by the sources that hand archives around.
namespace wafersim::sim {

template <class Archive>
void visit_travel(Archive& archive, topology::Travel& travel) {
  archive.tile(travel.target);
  archive.plain(travel.vc_class);
  archive.plain(travel.note);
}

/// A message that has not been handed over; what its send still owes is visited by its owner.
template <class Archive>
void visit_record(Archive& archive, Message& message) {
  archive.tile(message.source);
  archive.tile(message.destination);
  archive.plain(message.axis);
  archive.plain(message.vc);
  archive.plain(message.ports);
  visit_travel(archive, message.travel);
  archive.plain(message.bytes_to_inject);
  archive.plain(message.bytes_to_eject);
  archive.plain(message.bytes);
  archive.key(message.key);
  archive.time(message.posted);
  if (!archive.relative() || message.bytes_to_eject != message.bytes) archive.time(message.last_tail);
  for (WaitInterval& wait : message.sender_wait) archive.wait(wait);
  archive.plain(message.sender_stage);
  archive.recorded(message.tensor);
  archive.detail(message.number);  // read by policies that draw, under which nothing is folded
  archive.detail(message.send_token);
  archive.recorded(message.queued);
  archive.recorded_time(message.injected);
  archive.plain(message.trained);
  archive.time(message.sent_at);
  archive.time(message.received_at);
}

/// Its bid is visited by its router.
template <class Archive>
void visit_record(Archive& archive, Packet& packet) {
  archive.message(packet.message);
  archive.tile(packet.destination);
  archive.plain(packet.vc);
  archive.plain(packet.input);
  archive.plain(packet.output);
  archive.plain(packet.output_vc);
  visit_travel(archive, packet.travel);
  archive.plain(packet.axis);
  archive.plain(packet.bytes);
  archive.recorded(packet.queued);
  archive.recorded_time(packet.bid_at);
  archive.expiring(packet.tail);
}

/// The items of a list linked through a pool, first to last; a reader links them again.
template <class Archive, class T, class Visit>
void visit_list(Archive& archive, Pool<T>& pool, std::uint32_t& first, std::uint32_t& last, Visit visit) {
  std::size_t count = 0;
  if constexpr (!Archive::kReads) {
    for (std::uint32_t index = first; index != kNil; index = pool[index].next) ++count;
  }
  count = archive.size(count);
  if constexpr (Archive::kReads) {
    first = last = kNil;
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t index = kNil;
      visit(index);
      pool[index].next = kNil;
      (first == kNil ? first : pool[last].next) = index;
      last = index;
    }
  } else {
    for (std::uint32_t index = first; index != kNil; index = pool[index].next) visit(index);
  }
}

/// Credits that wait in the pool, in order.
template <class Visit>
void CreditCounter::for_each_queued(const CreditPool& pool, Visit visit_credit) const {
  if (tail_ == kNobody) return;
  std::uint32_t index = tail_;
  do {
    index = pool[index].next;
    visit_credit(pool[index]);
  } while (index != tail_);
}

/// Where a credit waits makes no difference, nor when those came that are back.
inline void CreditCounter::write_relative(StateWriter& writer, const CreditPool& pool) const {
  std::uint64_t room = given_;
  std::vector<Credit> under_way;
  const auto add = [&](const Credit& credit) {
    if (credit.at > writer.now()) under_way.push_back(credit);
  };
  add({first_at_, kNil, first_bytes_});
  add({second_at_, kNil, second_bytes_});
  for_each_queued(pool, [&](const Credit& credit) {
    room += credit.bytes;
    add(credit);
  });
  writer.plain(room);
  writer.plain(waiting_ != 0);
  writer.size(under_way.size());
  for (const Credit& credit : under_way) {
    writer.time(credit.at);
    writer.plain(credit.bytes);
  }
}

template <class Archive>
void CreditCounter::visit(Archive& archive, CreditPool& pool) {
  if constexpr (requires { Archive::kReleases; }) return give_back(pool);
  if constexpr (!Archive::kReads) {
    if (archive.relative()) return write_relative(archive, pool);
  }
  archive.time(first_at_);
  archive.time(second_at_);
  archive.plain(first_bytes_);
  archive.plain(second_bytes_);
  archive.plain(given_);
  bool waiting = waiting_ != 0;
  archive.plain(waiting);
  std::vector<Credit> queued;
  if constexpr (!Archive::kReads) for_each_queued(pool, [&](const Credit& credit) { queued.push_back(credit); });
  queued.resize(archive.size(queued.size()));
  if constexpr (Archive::kReads) {
    waiting_ = waiting ? 1 : 0;
    tail_ = kNobody;
  }
  for (Credit& credit : queued) {
    archive.time(credit.at);
    archive.plain(credit.bytes);
    if constexpr (Archive::kReads) append(credit, pool);
  }
}

template <class Archive>
void FlightClock::visit(Archive& archive) {
  if constexpr (!Archive::kReads) settle(archive.now());
  archive.plain(in_flight_);
  archive.counter(total_);
  if constexpr (Archive::kReads) since_ = archive.now();
}

template <class Archive>
void RouterEngine::visit(Archive& archive) {
  for (unsigned i = 0; i < outputs_.size() * vcs_; ++i) {
    InputVc& in = inputs_[i];
    visit_list(archive, network_.packets, in.head, in.tail, [&](std::uint32_t& packet) { archive.packet(packet); });
    archive.expiring(in.free_at);
  }
  for (unsigned port = 0; port < outputs_.size(); ++port) {
    Output& out = outputs_[port];
    out.clock.visit(archive);
    archive.plain(out.bidders);
    archive.time(out.wake_at);
    archive.expiring(out.credits_full_at);
    archive.plain(out.uncredited);
    const bool rested = out.bidders == 0 && out.uncredited == 0 && out.credits_full_at <= archive.now();
    if (!archive.relative() || !rested) archive.plain(out.first_bit);
    for (unsigned vc = 0; vc < vcs_; ++vc) outputs_.credit(out, vc).visit(archive, network_.credits);
    if (!archive.relative()) continue;
    for (std::uint64_t left = out.bidders; left != 0; left &= left - 1) {
      const unsigned input_vc = input_vc_of_bit(out, static_cast<unsigned>(std::countr_zero(left)));
      archive.time(network_.packets[inputs_[input_vc].head].bid_at);
    }
  }
  for (unsigned port = 0; port < mesh_ports_; ++port) {
    PortStatistics& statistics = statistics_[port];
    archive.counter(statistics.packets);
    archive.counter(statistics.busy);
    archive.counter(statistics.queued);
    for (Bytes& bytes : statistics.bytes_by_axis) archive.counter(bytes);
  }
}

/// Messages whose sends are not done.
template <class Archive>
void Nic::visit_sends(Archive& archive, std::uint32_t& first, std::uint32_t& last) {
  visit_list(archive, network_.messages, first, last, [&](std::uint32_t& message) {
    archive.message(message);
    if (archive.relative()) archive.token(network_.messages[message].send_token, tile_);
  });
}

template <class Archive>
void Nic::visit(Archive& archive) {
  for (unsigned port = 0; port < lanes_.size(); ++port) {
    Lane& lane = lanes_[port];
    lane.clock.visit(archive);
    archive.time(lane.wake_at);
    archive.detail_time(lane.last_injection);
    visit_sends(archive, lane.first, lane.last);
    for (unsigned vc = 0; vc < vcs_; ++vc) lanes_.credit(lane, vc).visit(archive, network_.credits);
  }
  visit_sends(archive, first_preparing_, last_preparing_);
  mailbox_.visit(archive, tile_, network_.messages);
  network_.flights[tile_].visit(archive);
  archive.counter(messages_sent_);
  archive.counter(messages_received_);
  archive.counter(packets_injected_);
  archive.counter(bytes_injected_);
  archive.counter(bytes_ejected_);
  archive.counter(bytes_sent_);
  archive.counter(bytes_received_);
}

template <class Archive>
void Mailbox::visit(Archive& archive, TileId tile, MessagePool& pool) {
  std::vector<Waiting> receives;
  std::vector<Landed> messages;
  if constexpr (!Archive::kReads) {
    // Order counts among equal addresses only; relative keys have the order of keys, as all are shifted alike.
    const auto by_address = [](const auto& a, const auto& b) {
      return std::tie(a.source, a.key, a.order) < std::tie(b.source, b.key, b.order);
    };
    receives_.for_each([&](const Waiting& entry) { receives.push_back(entry); });
    messages_.for_each([&](const Landed& entry) { messages.push_back(entry); });
    std::sort(receives.begin(), receives.end(), by_address);
    std::sort(messages.begin(), messages.end(), by_address);
  }
  receives.resize(archive.size(receives.size()));
  messages.resize(archive.size(messages.size()));
  archive.detail(next_order_);
  if constexpr (Archive::kReads) {
    receives_.clear();
    messages_.clear();
  }
  for (Waiting& entry : receives) {
    archive.tile(entry.source);
    archive.key(entry.key);
    archive.token(entry.token, tile);
    archive.plain(entry.bytes);
    archive.time(entry.posted);
    archive.detail(entry.order);
    if constexpr (Archive::kReads) receives_.add(entry);
  }
  for (Landed& entry : messages) {
    archive.tile(entry.source);
    archive.key(entry.key);
    archive.detail(entry.order);
    if (archive.relative()) {
      archive.plain(pool[entry.message].bytes);  // which is all that is asked of it
    } else {
      archive.message(entry.message);
    }
    if constexpr (Archive::kReads) messages_.add(entry);
  }
}

template <class Archive>
void Sram::visit(Archive& archive) {
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (!archive.levels_apart() || !only_has_to_fit(i)) archive.plain(held_[i]);
  }
  if (!archive.levels_apart()) {
    archive.plain(held_sram_);
    archive.plain(held_dram_);
  }
  for (Bytes& peak : peak_by_class_) archive.detail(peak);
  archive.detail(peak_sram_);
  archive.detail(peak_dram_);
  archive.detail(peak_);
  archive.detail_time(changed_at_);
  archive.counter(nic_total_);
  archive.expiring(nic_until_);
  if (!archive.relative()) archive.records(overflow_context_);
}

template <class Archive>
void CycleAccount::visit(Archive& archive) {
  require_invariant(!has_arrival_, "an arrival is not charged at the end of its cycle");
  for (std::size_t engine = 0; engine < kEngines; ++engine) {
    archive.plain(running_[engine]);
    if (!archive.relative() || running_[engine]) archive.time(compute_end_[engine]);
  }
  archive.plain(started_);
  archive.time(charged_);
  for (WaitInterval& wait : last_wait_) archive.wait(wait);
  archive.counter(cycles_.compute);
  for (Cycle& cycles : cycles_.exposed) archive.counter(cycles);
  archive.counter(cycles_.bubble);
  archive.counter(cycles_.memory_stall);
  archive.counter(cycles_.idle);
}

template <class Archive>
void TraceCore::visit(Archive& archive, Cycle nic_total) {
  require_invariant(completed_.empty(), "completions are left at the end of their cycle");
  if constexpr (Archive::kReads) archive.at_tile(binding_.tile);
  archive.next_step(next_step_);
  archive.plain(foreground_open_);
  archive.plain(results_changed_);
  archive.plain(may_issue_);
  if (!archive.relative()) {
    std::size_t slots = archive.size(slots_.size());
    while (slots_.size() < slots) slots_.emplace_back(&tables_);
    archive.records(free_slots_);
  }
  order_.resize(archive.size(order_.size()));
  for (std::uint32_t& slot : order_) {
    archive.slot(slot, binding_.tile);
    visit_open(archive, slots_[slot]);
  }
  for (Running& running : running_) visit_running(archive, running, nic_total);
  visit_reductions(archive);
  account_.visit(archive);
  for (Cycle& cycles : busy_) archive.counter(cycles);
  archive.counter(operations_);
  archive.counter(dram_bytes_);
  if constexpr (Archive::kReads) restore_results();
}

template <class Archive>
void TraceCore::visit_open(Archive& archive, OpenStep& open) {
  archive.step(open.step, next_step_);
  if constexpr (Archive::kReads) restore(open);
  archive.identity(step_of(open));
  archive.time(open.opened);
  archive.time(open.first_compute);
  archive.plain(open.operations_left);
  archive.plain(open.results_left);
  for (std::uint32_t& cursor : open.cursor) archive.plain(cursor);
  archive.records(open.waiting);
}

template <class Archive>
void TraceCore::visit_running(Archive& archive, Running& running, Cycle nic_total) {
  archive.plain(running.active);
  if (!running.active) return;
  archive.plain(running.sram_pending);
  archive.plain(running.dram_pending);
  archive.slot(running.op.slot, binding_.tile);
  archive.plain(running.op.op);
  archive.time(running.start);
  archive.plain(running.sram_cycles);
  if (running.sram_cycles == 0) return;
  Cycle since = nic_total - running.nic_busy_at_start;
  archive.plain(since);
  if constexpr (Archive::kReads) running.nic_busy_at_start = nic_total - since;
}

template <class Archive>
void TraceCore::visit_reductions(Archive& archive) {
  std::vector<ReadyReduction> ready;
  if constexpr (!Archive::kReads) {
    for (auto copy = reductions_; !copy.empty(); copy.pop()) ready.push_back(copy.top());
  }
  ready.resize(archive.size(ready.size()));
  if constexpr (Archive::kReads) reductions_ = {};
  for (ReadyReduction& reduction : ready) {
    archive.step(reduction.step, next_step_);
    archive.slot(reduction.op.slot, binding_.tile);
    archive.plain(reduction.op.op);
    if constexpr (Archive::kReads) reductions_.push(reduction);
  }
}

template <class Archive>
void MemoryTimeline::visit(Archive& archive) {
  archive.plain(written_);
  archive.records(bytes_);
  archive.records(repetitions_);
  bool in_windows = windows_.has_value();
  archive.plain(in_windows);
  if (in_windows && !windows_) windows_.emplace(start_, most_rows_);
  if (in_windows) windows_->visit(archive);
}

template <class Archive>
void MemoryWindows::visit(Archive& archive) {
  archive.plain(window_);
  archive.plain(window_end_);
  archive.records(entries_);
}

template <class Archive>
void StepRecorder::visit(Archive& archive) {
  archive.records(iterations_);
  for (std::vector<Sum>& group : groups_) archive.records(group);
}

}  // namespace wafersim::sim

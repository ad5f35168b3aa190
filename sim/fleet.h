#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "sim/calendar.h"

namespace wafersim::sim {

/// Clients of class C. When C is final, its functions are called directly and can be inlined into the loops.
template <class C>
class FleetOf final : public Fleet {
 public:
  explicit FleetOf(Calendar& calendar) : calendar_(calendar) {}

  ClientId enlist(C& client) {
    clients_.push_back(&client);
    return static_cast<ClientId>(clients_.size() - 1);
  }

  /// The functions of an event's way are small and called millions of times a second: inlining all of them into the loop
  /// was measured to save an eighth.
  [[gnu::flatten]] void update(std::span<const Event> events) override {
    const std::size_t count = events.size();
    for (std::size_t i = 0; i < std::min(count, kFarAhead); ++i) prefetch_client(events[i].client());
    for (std::size_t i = 0; i < std::min(count, kMidAhead); ++i) prefetch(events[i]);
    for (std::size_t i = 0; i < std::min(count, kNearAhead); ++i) prefetch_more(events[i]);
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kFarAhead < count) prefetch_client(events[i + kFarAhead].client());
      if (i + kMidAhead < count) prefetch(events[i + kMidAhead]);
      if (i + kNearAhead < count) prefetch_more(events[i + kNearAhead]);
      C& client = *clients_[events[i].client()];
      if (events[i].kind() == Event::kEvaluate) [[unlikely]] {
        client.queued_ = false;
        calendar_.request_evaluation(client);
      } else {
        client.update(events[i].kind(), events[i].payload);
      }
    }
  }

  [[gnu::flatten]] void evaluate(std::span<const ClientId> ids) override {
    const std::size_t count = ids.size();
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kFarAhead < count) prefetch_client(ids[i + kFarAhead]);
      if (i + kMidAhead < count) clients_[ids[i + kMidAhead]]->prefetch_evaluation();
      if (i + kNearAhead < count) clients_[ids[i + kNearAhead]]->prefetch_evaluation_more();
      C& client = *clients_[ids[i]];
      client.queued_ = false;
      client.evaluate();
    }
  }

 private:
  // Events of a cycle belong to modules all over the wafer: their data is asked for ahead of time, first the module, then
  // what its event will touch, in two steps.
  static constexpr std::size_t kFarAhead = 9;
  static constexpr std::size_t kMidAhead = 6;
  static constexpr std::size_t kNearAhead = 3;

  void prefetch_client(ClientId id) const {
    const char* const client = reinterpret_cast<const char*>(static_cast<const Client*>(clients_[id]));
    for (std::size_t offset = 0; offset < C::kHotBytes; offset += 64) __builtin_prefetch(client + offset);
  }
  void prefetch(const Event& event) const { clients_[event.client()]->prefetch(event.kind(), event.payload); }
  void prefetch_more(const Event& event) const { clients_[event.client()]->prefetch_more(event.kind(), event.payload); }

  Calendar& calendar_;
  std::vector<C*> clients_;
};

/// As calendar.add(client, rank), for the many modules of one final class: see FleetOf. One class for each rank; clients of
/// another are added in the common way.
template <class C>
void add_to_fleet(Calendar& calendar, C& client, Rank rank) {
  static_assert(std::is_final_v<C>);
  std::unique_ptr<Fleet>& fleet = calendar.fleet_of(rank);
  if (!fleet) fleet = std::make_unique<FleetOf<C>>(calendar);
  if (auto* const mine = dynamic_cast<FleetOf<C>*>(fleet.get())) {
    calendar.enlist(client, rank, mine->enlist(client));
  } else {
    calendar.add(client, rank);
  }
}

}  // namespace wafersim::sim

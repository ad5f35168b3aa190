#include "sim/stall_report.h"

#include <fmt/format.h>
#include <map>
#include <vector>

namespace wafersim::sim {
namespace {

constexpr std::size_t kListed = 10;

/// Follows "waits for a message of" from tile to tile until one repeats (a cycle) or waits for nothing.
std::string wait_chain(TileId start, const std::map<TileId, TileId>& waits_for, const topology::Mesh& mesh) {
  std::vector<TileId> chain{start};
  std::map<TileId, std::size_t> position{{start, 0}};
  while (true) {
    const auto next = waits_for.find(chain.back());
    if (next == waits_for.end()) return "";
    const auto [seen, fresh] = position.emplace(next->second, chain.size());
    if (!fresh) {
      std::string text = "cyclic wait: ";
      for (std::size_t i = seen->second; i < chain.size(); ++i) text += mesh.name(chain[i]) + " waits for ";
      return text + mesh.name(next->second);
    }
    chain.push_back(next->second);
  }
}

}  // namespace

std::string describe_stall(const Wafer& wafer, const topology::Mesh& mesh, const NetworkContext& network,
                           const FlitMesh* flits, Cycle now) {
  std::string text = fmt::format("the run stalled in cycle {}: nothing is left to happen, but", now);
  std::size_t unfinished = 0;
  std::map<TileId, TileId> waits_for;
  std::string lines;
  for (const Tile* tile : wafer.used_tiles()) {
    if (tile->core->finished()) continue;
    ++unfinished;
    const std::vector<Mailbox::Waiting> receives = tile->nic->mailbox().waiting();
    if (!receives.empty()) waits_for[tile->id()] = receives.front().source;
    if (unfinished > kListed) continue;
    lines += fmt::format("\n  {}: {}", mesh.name(tile->id()), tile->core->describe());
    for (std::size_t i = 0; i < receives.size() && i < 3; ++i) {
      const Mailbox::Waiting& request = receives[i];
      const bool sender_done =
          wafer.tile(request.source).used() ? wafer.tile(request.source).core->finished() : true;
      lines += fmt::format("; waits for {} B from {} (key {:#x}) since cycle {}{}", request.bytes,
                           mesh.name(request.source), request.key, request.posted,
                           sender_done ? ", whose program is finished: nobody sends it" : "");
    }
    for (const std::uint32_t index : tile->nic->mailbox().unclaimed()) {
      const Message& message = network.messages[index];
      lines += fmt::format("; holds {} B from {} (key {:#x}) that it has not asked for", message.bytes,
                           mesh.name(message.source), message.key);
    }
  }
  text += fmt::format(" {} of {} tiles have not finished:{}", unfinished, wafer.used_tiles().size(), lines);
  if (unfinished > kListed) text += fmt::format("\n  and {} more", unfinished - kListed);
  if (!waits_for.empty()) {
    const std::string chain = wait_chain(waits_for.begin()->first, waits_for, mesh);
    if (!chain.empty()) text += "\n  " + chain;
  }
  if (flits != nullptr) {
    const std::string stuck = flits->describe_stall();
    return stuck.empty() ? text : text + "\n  " + stuck;
  }
  for (const auto& tile : wafer.tiles()) {
    if (!tile->router) continue;
    const std::string stuck = tile->router->engine().describe_stall(tile->router->name());
    if (!stuck.empty()) text += "\n  " + stuck;
  }
  return text;
}

}  // namespace wafersim::sim

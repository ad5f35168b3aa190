#include "sim/multicasts.h"

#include "base/error.h"

namespace wafersim::sim {

std::uint32_t Multicasts::tree_to(TileId source, std::span<const TileId> receivers) {
  if (routing_ == nullptr) {
    throw PlanError("router.routing: packets of '" + name_ +
                    "' go ways of their own, so routers cannot copy them for several receivers; valid for multicast: xy, yx");
  }
  const auto [known, fresh] =
      known_.try_emplace({source, {receivers.begin(), receivers.end()}}, static_cast<std::uint32_t>(trees_.size()));
  if (fresh) trees_.emplace_back(*routing_, mesh_, source, receivers);
  return known->second;
}

std::uint32_t Multicasts::open(TileId source, std::span<const TileId> receivers) {
  const std::uint32_t tree = tree_to(source, receivers);
  const std::uint32_t multicast = pool_.take();
  pool_[multicast].tree = tree;
  return multicast;
}

std::vector<std::uint32_t> Multicasts::taken(std::uint32_t multicast) {
  UnderWay& it = pool_[multicast];
  if (++it.taken != it.messages.size()) return {};
  std::vector<std::uint32_t> carriers = std::move(it.carriers);
  pool_.give_back(multicast);
  return carriers;
}

}  // namespace wafersim::sim

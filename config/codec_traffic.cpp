#include "config/codec_traffic.h"

#include <fmt/format.h>

namespace wafersim::config {
namespace {

constexpr std::int64_t kLargestPacket = 65535;

bool read_size(const ConfigNode& node, const ValueContext& context, std::uint32_t& out) {
  std::int64_t value = 0;
  if (!context.expect_scalar(node)) return false;
  if (parse_integer(node.text, value) != std::errc{} || value < 1 || value > kLargestPacket) {
    return context.fail(node.where, fmt::format("'{}' is no size of a packet; valid: 1 to {} flits", node.text, kLargestPacket));
  }
  out = static_cast<std::uint32_t>(value);
  return true;
}

}  // namespace

bool Codec<workloads::PacketSizes>::read(const ConfigNode& node, const ValueContext& context, workloads::PacketSizes& out) {
  workloads::PacketSizes sizes;
  if (!node.is_list()) {
    if (!read_size(node, context, sizes.flits.front())) return false;
    out = sizes;
    return true;
  }
  if (node.children.empty()) return context.fail(node.where, "must list at least one size");
  sizes.flits.assign(node.children.size(), 1);
  bool ok = true;
  for (std::size_t i = 0; i < sizes.flits.size(); ++i) {
    ok = read_size(node.children[i], context.item(i), sizes.flits[i]) && ok;
  }
  if (ok) out = sizes;
  return ok;
}

ConfigNode Codec<workloads::PacketSizes>::write(const Key&, const workloads::PacketSizes& value) {
  if (value.flits.size() == 1) return ConfigNode::make_literal(std::to_string(value.flits.front()));
  ConfigNode list;
  list.kind = ConfigNode::Kind::list;
  for (const std::uint32_t size : value.flits) list.children.push_back(ConfigNode::make_literal(std::to_string(size)));
  return list;
}

}  // namespace wafersim::config

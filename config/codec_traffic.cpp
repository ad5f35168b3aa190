#include "config/codec_traffic.h"

#include <fmt/format.h>

namespace wafersim::config {
namespace {

constexpr std::int64_t kLargestPacket = 65535;

Rational least(const Key& key) { return Rational(key.min.value_or(0)); }

std::string range(const Key& key) {
  const std::string low = key.positive ? "above 0" : fmt::format("{} or more", least(key).to_string());
  if (!key.max) return low;
  return key.positive ? fmt::format("above 0, at most {}", *key.max)
                      : fmt::format("{} to {}", least(key).to_string(), *key.max);
}

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

bool Codec<Rational>::read(const ConfigNode& node, const ValueContext& context, Rational& out) {
  if (!context.expect_scalar(node)) return false;
  Rational value;
  if (!Rational::parse_decimal(node.text, value)) {
    return context.fail(node.where, fmt::format("'{}' is not a number; valid: {}", node.text, range(context.key)));
  }
  const Key& key = context.key;
  const bool fits = (key.positive ? value > Rational(0) : value >= least(key)) && (!key.max || value <= Rational(*key.max)) &&
                    value >= least(key);
  if (!fits) return context.fail(node.where, fmt::format("'{}' is out of range; valid: {}", node.text, range(key)));
  out = value;
  return true;
}

ConfigNode Codec<Rational>::write(const Key&, const Rational& value) { return ConfigNode::make_literal(value.to_string()); }

std::string Codec<Rational>::type(const Key& key) { return "number, " + range(key); }

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

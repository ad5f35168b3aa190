#pragma once

#include <string>

#include "config/codec_mesh.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::config {

/// A whole number of flits, or a list of them.
template <>
struct Codec<workloads::PacketSizes> {
  static bool read(const ConfigNode& node, const ValueContext& context, workloads::PacketSizes& out);
  static ConfigNode write(const Key&, const workloads::PacketSizes& value);
  static std::string type(const Key&) { return "whole number, or list of whole numbers, 1 to 65535"; }
};

}  // namespace wafersim::config

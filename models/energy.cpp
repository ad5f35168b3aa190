#include "models/energy.h"

namespace wafersim::models {
namespace {

template <class Quantity>
double joules(const std::optional<Quantity>& figure) {
  return figure ? figure->joules.to_double() : 0.0;
}

}  // namespace

const char* to_string(EnergyPart part) {
  switch (part) {
    case EnergyPart::matrix:
      return "matrix";
    case EnergyPart::vector:
      return "vector";
    case EnergyPart::sram:
      return "sram";
    case EnergyPart::dram:
      return "dram";
    case EnergyPart::link:
      return "link";
    case EnergyPart::router:
      return "router";
    case EnergyPart::nic:
      return "nic";
    case EnergyPart::standing:
      return "static";
  }
  return "?";
}

bool EnergySpec::has(EnergyPart part) const {
  switch (part) {
    case EnergyPart::matrix:
      return matrix.has_value();
    case EnergyPart::vector:
      return vector.has_value();
    case EnergyPart::sram:
      return sram.has_value();
    case EnergyPart::dram:
      return dram.has_value();
    case EnergyPart::link:
      return link.has_value();
    case EnergyPart::router:
      return router.has_value();
    case EnergyPart::nic:
      return nic.has_value();
    case EnergyPart::standing:
      return standing.has_value();
  }
  return false;
}

bool EnergySpec::any() const {
  for (std::size_t i = 0; i < kEnergyParts; ++i) {
    if (has(static_cast<EnergyPart>(i))) return true;
  }
  return false;
}

double EnergySpec::figure(EnergyPart part) const {
  switch (part) {
    case EnergyPart::matrix:
      return joules(matrix);
    case EnergyPart::vector:
      return joules(vector);
    case EnergyPart::sram:
      return joules(sram);
    case EnergyPart::dram:
      return joules(dram);
    case EnergyPart::link:
      return joules(link);
    case EnergyPart::router:
      return joules(router);
    case EnergyPart::nic:
      return joules(nic);
    case EnergyPart::standing:
      return standing ? standing->watts.to_double() : 0.0;
  }
  return 0;
}

double EnergySpec::link_joules_per_bit(const topology::LinkClass& link_class, int tiles) const {
  const double plain = joules(link);
  double per_bit = plain * tiles;
  switch (link_class.kind) {
    case topology::LinkKind::plain:
    case topology::LinkKind::wrap:
      break;
    case topology::LinkKind::folded:
      per_bit = plain * (2 * link_class.tiles);
      break;
    case topology::LinkKind::wafer:
      if (wafer_link) per_bit = joules(wafer_link);
      break;
    case topology::LinkKind::express:
      if (express_link) per_bit = joules(express_link);
      break;
  }
  if (reticle_link) per_bit += (joules(reticle_link) - plain) * link_class.borders;
  return per_bit;
}

}  // namespace wafersim::models

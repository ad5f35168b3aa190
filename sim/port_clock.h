#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/error.h"
#include "base/rational.h"
#include "base/units.h"

namespace wafersim::sim {

/// An exact point in time or duration: whole cycles and a part in units of 1/scale cycle, one scale for the whole network.
struct ExactTime {
  Cycle whole = 0;
  std::uint64_t part = 0;  ///< below the scale
  auto operator<=>(const ExactTime&) const = default;
  Cycle floor() const { return whole; }
  Cycle ceil() const { return whole + (part != 0 ? 1 : 0); }
  ExactTime after(Cycle cycles) const { return {whole + cycles, part}; }

  /// Compared as one number, so that there is no branch: which of two tails is later has no pattern.
  static ExactTime later(const ExactTime& a, const ExactTime& b) {
    __extension__ using Wide = unsigned __int128;
    const auto one = [](const ExactTime& t) { return Wide{t.whole} << 64 | t.part; };
    const Wide latest = std::max(one(a), one(b));
    return {static_cast<Cycle>(latest >> 64), static_cast<std::uint64_t>(latest)};
  }
};

/// The scale in which the serialization of whole bytes on ports of all the given rates is exact: the least common multiple of
/// their numerators. Throws PlanError when it does not fit 62 bits.
inline std::uint64_t common_time_scale(const std::vector<Rational>& rates) {
  std::uint64_t scale = 1;
  for (const Rational& rate : rates) {
    const auto num = static_cast<std::uint64_t>(rate.num());
    const std::uint64_t factor = num / std::gcd(scale, num);
    if (scale > (std::uint64_t{1} << 62) / factor) {
      throw PlanError("the bandwidths of link, injection and ejection have no common exact time scale; round them");
    }
    scale *= factor;
  }
  return scale;
}

/// Serialization at a port of a fixed rate, exact.
class PortRate {
 public:
  PortRate() = default;
  /// `usual_bytes` is the packet size whose serialization is kept ready.
  PortRate(const Rational& bytes_per_cycle, std::uint64_t scale, Bytes usual_bytes)
      : scale_(scale),
        units_per_byte_(static_cast<std::uint64_t>(bytes_per_cycle.den()) *
                        (scale / static_cast<std::uint64_t>(bytes_per_cycle.num()))),
        usual_bytes_(usual_bytes),
        usual_(divide(usual_bytes)) {}

  ExactTime serialization(Bytes bytes) const { return bytes == usual_bytes_ ? usual_ : divide(bytes); }
  std::uint64_t scale() const { return scale_; }

 private:
  [[gnu::noinline]] ExactTime divide(Bytes bytes) const {
    __extension__ using Wide = unsigned __int128;
    const Wide units = Wide{bytes} * units_per_byte_;
    if (units <= ~std::uint64_t{0}) [[likely]] {
      const auto small = static_cast<std::uint64_t>(units);
      return {small / scale_, small % scale_};
    }
    return {static_cast<Cycle>(units / scale_), static_cast<std::uint64_t>(units % scale_)};
  }

  std::uint64_t scale_ = 1;
  std::uint64_t units_per_byte_ = 1;
  Bytes usual_bytes_ = 0;
  ExactTime usual_;
};

/// When a port is free. Back-to-back packets carry the part of a cycle in which the one before ended.
class PortClock {
 public:
  PortClock() = default;
  explicit PortClock(const ExactTime& free) : free_(free) {}
  /// A grant needs free_at() <= now.
  Cycle free_at() const { return free_.floor(); }
  /// When exactly it is free, in parts of a cycle: changes with each packet.
  std::uint64_t free_parts(std::uint64_t scale) const { return free_.whole * scale + free_.part; }
  /// The cycle in which the last tail has left.
  Cycle held_until() const { return free_.ceil(); }

  /// Occupies the port from `now` (or from the part of `now` at which it becomes free) for `bytes`, but at least until
  /// `not_before`. Returns when the tail leaves.
  ExactTime occupy(Cycle now, Bytes bytes, const ExactTime& not_before, const PortRate& rate) {
    const ExactTime span = rate.serialization(bytes);
    ExactTime end{now + span.whole, span.part + (free_.whole == now ? free_.part : 0)};
    if (end.part >= rate.scale()) {
      end.part -= rate.scale();
      ++end.whole;
    }
    free_ = ExactTime::later(end, not_before);
    return free_;
  }

  /// Its state, see sim/state_archive.h.
  template <class Archive>
  void visit(Archive& archive) {
    archive.expiring(free_);
  }

 private:
  ExactTime free_;
};

}  // namespace wafersim::sim

#pragma once

#include <optional>
#include <string>
#include <variant>

#include "base/rational.h"
#include "base/units.h"

namespace wafersim {

/// Quantities as a scenario writes them: an exact value with its unit. `*_per_cycle` and `in_cycles` forms are kept
/// as written because they scale with the clock; the others are absolute.

struct Frequency {
  Rational hertz;
  bool operator==(const Frequency&) const = default;
};

struct Bandwidth {
  Rational value;           ///< bytes per second, or bytes per cycle
  bool per_cycle = false;
  bool operator==(const Bandwidth&) const = default;
  /// Bytes per cycle of `clock`, exact.
  Rational bytes_per_cycle(const Frequency& clock) const;
  static Bandwidth per_second(Rational bytes) { return {bytes, false}; }
  static Bandwidth per_clock(Rational bytes) { return {bytes, true}; }
};

struct Duration {
  Rational value;           ///< seconds, or cycles
  bool in_cycles = false;
  bool operator==(const Duration&) const = default;
  /// ceil(seconds * clock), or the cycles as written (rounded up).
  Cycle cycles(const Frequency& clock) const;
  static Duration of_cycles(std::int64_t count) { return {Rational(count), true}; }
};

struct ComputeRate {
  Rational value;           ///< FLOP per second, or FLOP per cycle
  bool per_cycle = false;
  bool operator==(const ComputeRate&) const = default;
  Rational flops_per_cycle(const Frequency& clock) const;
};

struct EnergyPerBit {
  Rational joules;
  bool operator==(const EnergyPerBit&) const = default;
};

struct EnergyPerFlop {
  Rational joules;
  bool operator==(const EnergyPerFlop&) const = default;
};

struct Power {
  Rational watts;
  bool operator==(const Power&) const = default;
};

/// Whole bytes; a type of its own so that config/ knows that a unit must be written.
struct DataSize {
  Bytes bytes = 0;
  bool operator==(const DataSize&) const = default;
};

/// Parses "9 TB/s", "32 B/cycle", "48 KiB", "200 ns", "2 cycles", "312 TFLOP/s", "0.8 pJ/bit", "0.3 pJ/FLOP",
/// "30 mW", "1.1 GHz".
/// On failure returns false and puts into `error` what is wrong and which units fit.
bool parse_quantity(const std::string& text, Frequency& out, std::string& error);
bool parse_quantity(const std::string& text, Bandwidth& out, std::string& error);
bool parse_quantity(const std::string& text, Duration& out, std::string& error);
bool parse_quantity(const std::string& text, ComputeRate& out, std::string& error);
bool parse_quantity(const std::string& text, EnergyPerBit& out, std::string& error);
bool parse_quantity(const std::string& text, EnergyPerFlop& out, std::string& error);
bool parse_quantity(const std::string& text, Power& out, std::string& error);
bool parse_quantity(const std::string& text, DataSize& out, std::string& error);

/// Writes a quantity so that parse_quantity gives back exactly the same value, with the largest prefix that keeps the
/// number at or above one.
std::string to_string(const Frequency& value);
std::string to_string(const Bandwidth& value);
std::string to_string(const Duration& value);
std::string to_string(const ComputeRate& value);
std::string to_string(const EnergyPerBit& value);
std::string to_string(const EnergyPerFlop& value);
std::string to_string(const Power& value);
std::string to_string(const DataSize& value);

}  // namespace wafersim

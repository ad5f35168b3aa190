#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <vector>

namespace wafersim {
namespace {

struct Unit {
  const char* name;
  std::int64_t num;  ///< value of one unit in the base unit = num / den
  std::int64_t den;
  bool per_cycle;
};

// Largest first: the writer takes the first that keeps the number at or above one.
constexpr std::array kFrequency = {Unit{"GHz", 1'000'000'000, 1, false}, Unit{"MHz", 1'000'000, 1, false},
                                   Unit{"kHz", 1'000, 1, false}, Unit{"Hz", 1, 1, false}};
constexpr std::array kBandwidth = {
    Unit{"PB/s", 1'000'000'000'000'000, 1, false}, Unit{"TB/s", 1'000'000'000'000, 1, false},
    Unit{"GB/s", 1'000'000'000, 1, false},         Unit{"MB/s", 1'000'000, 1, false},
    Unit{"kB/s", 1'000, 1, false},                 Unit{"B/s", 1, 1, false},
    Unit{"TiB/s", std::int64_t{1} << 40, 1, false}, Unit{"GiB/s", std::int64_t{1} << 30, 1, false},
    Unit{"MiB/s", std::int64_t{1} << 20, 1, false}, Unit{"KiB/s", std::int64_t{1} << 10, 1, false},
    Unit{"Tb/s", 125'000'000'000, 1, false},       Unit{"Gb/s", 125'000'000, 1, false},
    Unit{"B/ns", 1'000'000'000, 1, false},         Unit{"KiB/cycle", 1024, 1, true},
    Unit{"B/cycle", 1, 1, true}};
constexpr std::array kDuration = {Unit{"s", 1, 1, false}, Unit{"ms", 1, 1'000, false}, Unit{"us", 1, 1'000'000, false},
                                  Unit{"ns", 1, 1'000'000'000, false}, Unit{"ps", 1, 1'000'000'000'000, false},
                                  Unit{"cycles", 1, 1, true}, Unit{"cycle", 1, 1, true}};
constexpr std::array kCompute = {
    Unit{"PFLOP/s", 1'000'000'000'000'000, 1, false}, Unit{"TFLOP/s", 1'000'000'000'000, 1, false},
    Unit{"GFLOP/s", 1'000'000'000, 1, false},         Unit{"MFLOP/s", 1'000'000, 1, false},
    Unit{"FLOP/s", 1, 1, false},                      Unit{"FLOP/cycle", 1, 1, true}};
constexpr std::array kEnergy = {Unit{"J/bit", 1, 1, false}, Unit{"nJ/bit", 1, 1'000'000'000, false}, Unit{"pJ/bit", 1, 1'000'000'000'000, false},
                                Unit{"fJ/bit", 1, 1'000'000'000'000'000, false}};
constexpr std::array kEnergyPerFlop = {Unit{"J/FLOP", 1, 1, false}, Unit{"nJ/FLOP", 1, 1'000'000'000, false},
                                       Unit{"pJ/FLOP", 1, 1'000'000'000'000, false},
                                       Unit{"fJ/FLOP", 1, 1'000'000'000'000'000, false}};
constexpr std::array kPower = {Unit{"MW", 1'000'000, 1, false}, Unit{"kW", 1'000, 1, false}, Unit{"W", 1, 1, false},
                               Unit{"mW", 1, 1'000, false}, Unit{"uW", 1, 1'000'000, false}, Unit{"nW", 1, 1'000'000'000, false}};
constexpr std::array kSize = {
    Unit{"TiB", std::int64_t{1} << 40, 1, false}, Unit{"TB", 1'000'000'000'000, 1, false},
    Unit{"GiB", std::int64_t{1} << 30, 1, false}, Unit{"GB", 1'000'000'000, 1, false},
    Unit{"MiB", std::int64_t{1} << 20, 1, false}, Unit{"MB", 1'000'000, 1, false},
    Unit{"KiB", std::int64_t{1} << 10, 1, false}, Unit{"kB", 1'000, 1, false},
    Unit{"B", 1, 1, false}};

std::string unit_list(std::span<const Unit> units) {
  std::string text;
  for (const Unit& unit : units) {
    if (!text.empty()) text += ", ";
    text += unit.name;
  }
  return text;
}

bool parse(const std::string& text, std::span<const Unit> units, Rational& value, bool& per_cycle,
           std::string& error) {
  std::size_t split = 0;
  while (split < text.size()) {
    const char c = text[split];
    const bool exponent = (c == 'e' || c == 'E') && split > 0 && split + 1 < text.size() &&
                          (std::isdigit(static_cast<unsigned char>(text[split + 1])) != 0 ||
                           ((text[split + 1] == '+' || text[split + 1] == '-') && split + 2 < text.size()));
    const bool sign = (c == '+' || c == '-') && (split == 0 || text[split - 1] == 'e' || text[split - 1] == 'E');
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && !exponent && !sign && c != '/') break;
    if (c == '/' && (split == 0 || std::isdigit(static_cast<unsigned char>(text[split - 1])) == 0)) break;
    ++split;
  }
  std::string number = text.substr(0, split);
  std::string unit_name = text.substr(split);
  unit_name.erase(0, unit_name.find_first_not_of(" \t"));
  unit_name.erase(unit_name.find_last_not_of(" \t") + 1);

  Rational num;
  Rational den(1);
  const std::size_t slash = number.find('/');
  const bool ok = Rational::parse_decimal(number.substr(0, slash), num) &&
                  (slash == std::string::npos || Rational::parse_decimal(number.substr(slash + 1), den)) &&
                  den.num() != 0;
  if (!ok) {
    error = "'" + text + "' is not a number with a unit; units that fit: " + unit_list(units);
    return false;
  }
  if (unit_name.empty()) {
    error = "'" + text + "' has no unit; units that fit: " + unit_list(units);
    return false;
  }
  for (const Unit& unit : units) {
    if (unit_name != unit.name) continue;
    try {
      value = num / den * Rational(unit.num, unit.den);
    } catch (const std::overflow_error&) {
      error = "'" + text + "' is too large or too fine to hold exactly";
      return false;
    }
    per_cycle = unit.per_cycle;
    return true;
  }
  error = "unit '" + unit_name + "' does not fit here; units that fit: " + unit_list(units);
  return false;
}

/// The value in `unit`, or nothing where that cannot be held exactly.
std::optional<Rational> in_unit(const Rational& value, const Unit& unit) {
  try {
    return value / Rational(unit.num, unit.den);
  } catch (const std::overflow_error&) {
    return std::nullopt;
  }
}

/// The largest unit that keeps a readable number at or above one; else the shortest text there is. Every list of units
/// has one of value 1, in which any value can be held, so what is written can be read back exactly.
std::string write(const Rational& value, bool per_cycle, std::span<const Unit> units) {
  constexpr std::size_t readable_digits = 12;
  std::string shortest;
  for (const Unit& unit : units) {
    if (unit.per_cycle != per_cycle) continue;
    const std::optional<Rational> scaled = in_unit(value, unit);
    if (!scaled) continue;
    const std::string number = scaled->to_string();
    const std::string text = number + " " + unit.name;
    if (*scaled >= Rational(1) && number.size() <= readable_digits) return text;
    if (shortest.empty() || text.size() < shortest.size()) shortest = text;
  }
  return shortest;
}

/// Sizes are written in binary units where they are exact, else decimal, else bytes.
std::string write_size(Bytes bytes) {
  for (const Unit& unit : kSize) {
    const auto size = static_cast<Bytes>(unit.num);
    if (bytes >= size && bytes % size == 0) return std::to_string(bytes / size) + " " + unit.name;
  }
  return std::to_string(bytes) + " B";
}

/// Bandwidths are written in decimal units only.
std::vector<Unit> decimal_bandwidth() {
  std::vector<Unit> units;
  for (const Unit& unit : kBandwidth) {
    const std::string name = unit.name;
    if (name.find('i') == std::string::npos && name.find("b/") == std::string::npos && name != "B/ns") {
      units.push_back(unit);
    }
  }
  return units;
}

template <class Out>
bool parse_rate(const std::string& text, std::span<const Unit> units, Out& out, std::string& error) {
  return parse(text, units, out.value, out.per_cycle, error);
}

}  // namespace

Rational Bandwidth::bytes_per_cycle(const Frequency& clock) const { return per_cycle ? value : value / clock.hertz; }

Cycle Duration::cycles(const Frequency& clock) const { return (in_cycles ? value : value * clock.hertz).ceil(); }

Rational ComputeRate::flops_per_cycle(const Frequency& clock) const { return per_cycle ? value : value / clock.hertz; }

bool parse_quantity(const std::string& text, Frequency& out, std::string& error) {
  bool ignored = false;
  return parse(text, kFrequency, out.hertz, ignored, error);
}
bool parse_quantity(const std::string& text, Bandwidth& out, std::string& error) {
  return parse_rate(text, kBandwidth, out, error);
}
bool parse_quantity(const std::string& text, Duration& out, std::string& error) {
  return parse(text, kDuration, out.value, out.in_cycles, error);
}
bool parse_quantity(const std::string& text, ComputeRate& out, std::string& error) {
  return parse_rate(text, kCompute, out, error);
}
bool parse_quantity(const std::string& text, EnergyPerBit& out, std::string& error) {
  bool ignored = false;
  return parse(text, kEnergy, out.joules, ignored, error);
}
bool parse_quantity(const std::string& text, EnergyPerFlop& out, std::string& error) {
  bool ignored = false;
  return parse(text, kEnergyPerFlop, out.joules, ignored, error);
}
bool parse_quantity(const std::string& text, Power& out, std::string& error) {
  bool ignored = false;
  return parse(text, kPower, out.watts, ignored, error);
}
bool parse_quantity(const std::string& text, DataSize& out, std::string& error) {
  Rational value;
  bool ignored = false;
  if (!parse(text, kSize, value, ignored, error)) return false;
  if (!value.is_integer() || value.num() < 0) {
    error = "'" + text + "' is not a whole number of bytes";
    return false;
  }
  out.bytes = static_cast<Bytes>(value.num());
  return true;
}

std::string to_string(const Frequency& value) { return write(value.hertz, false, kFrequency); }
std::string to_string(const Bandwidth& value) { return write(value.value, value.per_cycle, decimal_bandwidth()); }
std::string to_string(const Duration& value) {
  if (!value.in_cycles) return write(value.value, false, kDuration);
  return value.value.to_string() + (value.value == Rational(1) ? " cycle" : " cycles");
}
std::string to_string(const ComputeRate& value) { return write(value.value, value.per_cycle, kCompute); }
std::string to_string(const EnergyPerBit& value) { return write(value.joules, false, kEnergy); }
std::string to_string(const EnergyPerFlop& value) { return write(value.joules, false, kEnergyPerFlop); }
std::string to_string(const Power& value) { return write(value.watts, false, kPower); }
std::string to_string(const DataSize& value) { return write_size(value.bytes); }

}  // namespace wafersim

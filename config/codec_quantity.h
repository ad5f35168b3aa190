#pragma once

#include "base/quantity.h"

namespace wafersim::config {

/// What Codec knows of each kind of quantity: what has to be positive of it, and its name in the reference.

inline const Rational& magnitude(const Frequency& value) { return value.hertz; }
inline const Rational& magnitude(const Bandwidth& value) { return value.value; }
inline const Rational& magnitude(const Duration& value) { return value.value; }
inline const Rational& magnitude(const ComputeRate& value) { return value.value; }
inline const Rational& magnitude(const EnergyPerBit& value) { return value.joules; }
inline const Rational& magnitude(const EnergyPerFlop& value) { return value.joules; }
inline const Rational& magnitude(const Power& value) { return value.watts; }
inline Rational magnitude(const DataSize& value) { return Rational(value.bytes == 0 ? 0 : 1); }

inline const char* quantity_name(const Frequency&) { return "frequency (Hz, MHz, GHz)"; }
inline const char* quantity_name(const Bandwidth&) { return "bandwidth (GB/s, TB/s, B/cycle)"; }
inline const char* quantity_name(const Duration&) { return "duration (ns, us, cycles)"; }
inline const char* quantity_name(const ComputeRate&) { return "compute rate (TFLOP/s, FLOP/cycle)"; }
inline const char* quantity_name(const EnergyPerBit&) { return "energy per bit (pJ/bit, fJ/bit)"; }
inline const char* quantity_name(const EnergyPerFlop&) { return "energy per operation (pJ/FLOP, fJ/FLOP)"; }
inline const char* quantity_name(const Power&) { return "power (W, mW, kW)"; }
inline const char* quantity_name(const DataSize&) { return "size (KiB, MiB, GiB, kB, MB, GB)"; }

template <class T>
concept Quantity = requires(const T& value) {
  quantity_name(value);
};

}  // namespace wafersim::config

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "base/units.h"
#include "topology/mesh.h"

namespace wafersim::workloads {

/// Where packets go (Dally and Towles, "Principles and Practices of Interconnection Networks", section 3.2). `neighbour` and
/// `tornado` move in both dimensions, `tornado_x` in a row only; all wrap round the mesh.
enum class SyntheticPattern {
  uniform,         ///< any live tile, the source included
  transpose,       ///< (x, y) to (y, x); square meshes
  bit_complement,  ///< tile id with every bit turned; powers of two
  bit_reverse,     ///< tile id read backwards; powers of two
  shuffle,         ///< tile id rotated left by one bit; powers of two
  tornado,         ///< ceil(k/2) - 1 tiles on in each dimension
  tornado_x,
  neighbour,       ///< one tile on in each dimension
  hotspot,         ///< some packets to a few tiles, the rest uniform
  permutation,     ///< of a file
  trace            ///< packets of a file, at their cycles
};

/// When packets are made. `bernoulli`: in each cycle with the same probability. `on_off`: so in bursts, with none between them
/// (a two-state Markov chain).
enum class InjectionProcess { bernoulli, on_off };

/// Sizes of packets in flits, all equally likely; a size listed twice is twice as likely.
struct PacketSizes {
  std::vector<std::uint32_t> flits{1};
  bool operator==(const PacketSizes&) const = default;
  Rational mean() const;
};

/// Loads that a sweep measures.
struct SweepSpec {
  int points = 12;
  Rational precision = Rational(1, 100);
};

/// Packets made at random for a network alone, and how they are measured.
struct TrafficSpec {
  SyntheticPattern pattern = SyntheticPattern::uniform;
  std::string file;                         ///< of `permutation` and `trace`
  std::vector<topology::Coord> hotspots;
  Rational hotspot_share = Rational(1, 10); ///< of all packets, to the hotspots
  Rational load = Rational(1, 10);          ///< flits per tile and cycle
  PacketSizes packet_flits;
  InjectionProcess injection = InjectionProcess::bernoulli;
  Rational burst_load = Rational(1);        ///< flits per cycle within a burst
  Rational burst_cycles = Rational(16);     ///< mean length of a burst
  Duration warmup = Duration::of_cycles(3000);
  Duration measurement = Duration::of_cycles(10000);  ///< packets made in this time are measured
  Duration drain = Duration::of_cycles(50000);        ///< that they have to arrive
  int seeds = 1;                            ///< runs, each with random numbers of its own
  SweepSpec sweep;
};

/// Destinations of packets. Immutable after construction.
class Destinations {
 public:
  /// Throws PlanError when the pattern does not fit the mesh (says which would), when it sends to or from a dead tile it
  /// names; ScenarioError when the file is wrong; IoError when it cannot be read.
  Destinations(const TrafficSpec& spec, const topology::Mesh& mesh);

  /// The one destination of all packets of `source`; kNoTile when it is drawn for each packet.
  TileId fixed(TileId source) const { return fixed_.empty() ? kNoTile : fixed_[source]; }
  bool sends(TileId source) const { return sends_[source]; }

  /// Draws the destination of one packet.
  template <class Random>
  TileId draw(TileId source, Random& random) const {
    if (!fixed_.empty()) return fixed_[source];
    if (!hotspots_.empty() && random.next() < hotspot_threshold_) return hotspots_[random.below(hotspots_.size())];
    return live_[random.below(live_.size())];
  }

  /// Probability that a packet of `source` goes to `destination`, in units of 1 / weights().
  std::uint64_t weight(TileId source, TileId destination) const;
  std::uint64_t weights() const { return weights_; }

 private:
  void permute(const TrafficSpec& spec, const topology::Mesh& mesh);

  std::vector<TileId> fixed_;
  std::vector<TileId> live_;
  std::vector<TileId> hotspots_;
  std::vector<bool> sends_;
  std::uint64_t hotspot_threshold_ = 0;  ///< of 2^64
  std::uint64_t weights_ = 1;
  std::uint64_t hotspot_weight_ = 0;     ///< extra of each hotspot
  std::uint64_t uniform_weight_ = 0;     ///< of each live tile
};

/// Reads a CSV of `source, destination`, a line for each tile that sends; the others do not. Tiles and errors as in
/// read_packet_trace().
std::vector<TileId> read_permutation(const std::string& path, const topology::Mesh& mesh);

/// One packet of a recorded trace.
struct TracedPacket {
  Cycle cycle = 0;
  TileId source = 0;
  TileId destination = 0;
  Bytes bytes = 0;
};
/// Reads a CSV of `cycle, source, destination, bytes` (tiles as numbers or as tile_x_y; a header line may come first), sorted by
/// cycle, at least one. Throws ScenarioError that names the line, IoError when it cannot be read.
std::vector<TracedPacket> read_packet_trace(const std::string& path, const topology::Mesh& mesh);

}  // namespace wafersim::workloads

#pragma once

#include <optional>
#include <string>

#include "base/quantity.h"
#include "models/energy.h"
#include "models/flit_router.h"
#include "topology/mesh.h"

namespace wafersim::models {

/// How a GEMM lies on the systolic array.
enum class Dataflow { weight_stationary, output_stationary, input_stationary };

/// Matrix engine: one or more systolic arrays of rows x cols multiply-accumulate units. With `peak` given, the number of
/// arrays is peak / (2 rows cols clock), which may be fractional; otherwise it is `arrays`.
struct MatrixSpec {
  topology::Shape shape{128, 128};
  std::optional<ComputeRate> peak;
  int arrays = 1;
  Dataflow dataflow = Dataflow::weight_stationary;
};

/// Vector engine: element-wise work, normalisations, softmax, optimizer, reductions.
struct VectorSpec {
  ComputeRate peak{Rational(1024), true};
};

struct CoreSpec {
  MatrixSpec matrix;
  VectorSpec vector;
  Duration launch_overhead = Duration::of_cycles(0);  ///< added to every operation
  std::string table;  ///< CSV of measured kernels, takes the place of the systolic formula for the shapes it lists
};

struct SramSpec {
  DataSize capacity{64ULL << 20};
  std::optional<Bandwidth> bandwidth;  ///< absent = unlimited
};

struct DramSpec {
  DataSize capacity;        ///< of one die
  Bandwidth bandwidth;      ///< of one die
  topology::Shape die{1, 1};  ///< tiles that share it
};

struct LinkSpec {
  Bandwidth bandwidth{Rational(256), true};  ///< per link and direction
  Duration latency = Duration::of_cycles(1);  ///< L >= 1
};

/// Tiles that are exposed together; links over the border of such a rectangle may be slower and longer.
struct ReticleSpec {
  topology::Shape every{1, 1};         ///< tiles of one
  std::optional<Bandwidth> bandwidth;  ///< of a link over a border; absent = the link's
  std::optional<Duration> latency;     ///< of a link over one border, at least the link's; absent = the link's
};

/// Wafers side by side, all alike, whose tiles make one mesh.
struct WafersSpec {
  topology::Shape grid{1, 1};
  Bandwidth bandwidth{Rational(1), true};        ///< of each link between two wafers, per direction
  Duration latency = Duration::of_cycles(1);     ///< of such a link
};

/// Links that skip routers, see topology::ExpressGrid.
struct ExpressSpec {
  topology::Shape span{1, 1};          ///< routers from one end to the other
  topology::Shape every{1, 1};         ///< routers that have them
  std::optional<Bandwidth> bandwidth;  ///< absent = the link's
  std::optional<Duration> latency;     ///< absent = the link's times the tiles that the link is long
};

/// Injection and ejection are links of their own. `per_direction`: one port for each mesh direction (a tile can drive
/// and drain all its links at once); `single`: one injection and one ejection port, as in a classic NoC.
enum class NicPorts { per_direction, single };

struct NicSpec {
  NicPorts ports = NicPorts::per_direction;
  std::optional<Bandwidth> injection_bandwidth;  ///< per port; absent = the link's
  std::optional<Bandwidth> ejection_bandwidth;   ///< per port; absent = the link's
  Duration injection_latency = Duration::of_cycles(0);  ///< Linj >= 0
  Duration ejection_latency = Duration::of_cycles(0);   ///< Leject >= 0
  Duration message_overhead = Duration::of_cycles(0);   ///< per message and end
  Duration stream_latency = Duration::of_cycles(1);     ///< of streamed messages: from arrival to use
};

struct WaferSpec {
  topology::MeshSpec mesh;  ///< of one wafer; mesh_spec() adds what other members say of it
  std::optional<WafersSpec> wafers;
  Frequency clock{Rational(1'000'000'000)};
  CoreSpec core;
  SramSpec sram;
  std::optional<DramSpec> dram;
  LinkSpec link;
  std::optional<ReticleSpec> reticle;
  std::optional<ExpressSpec> express;
  std::optional<Duration> wrap_latency;  ///< of the link that closes a straight ring; absent = rings are folded
  NicSpec nic;
  EnergySpec energy;
};

/// Tiles of all wafers.
topology::Shape all_tiles(const WaferSpec& wafer);
/// The mesh of all wafers with the layout of its rings, its reticles and its express links. Throws PlanError as resolve_hardware()
/// does for the bandwidths that it compares.
topology::MeshSpec mesh_spec(const WaferSpec& wafer);

struct RouterSpec {
  std::string routing = "xy";
  int virtual_channels = 2;
  Duration pipeline = Duration::of_cycles(1);  ///< R >= 0
  Duration turn = Duration::of_cycles(0);      ///< added to R where a packet leaves along another dimension than it came; below 2^16
  std::optional<Duration> credit_latency;      ///< Lc >= 1; absent = the link's latency
  std::optional<DataSize> vc_buffer;           ///< at least one packet; absent = smallest that keeps a link busy
  FlitRouterSpec flit;

  /// Of flits. Where the scenario says nothing, a router without a pipeline is one of cut-through: wormhole takes a cycle at least.
  Switching switching() const {
    const bool instant = pipeline.value == Rational(0) && !flit.named_stages();
    return flit.switching.value_or(instant ? Switching::cut_through : Switching::wormhole);
  }
};

enum class Fidelity { packet, flit, ideal, analytic };

/// How much of the machine a prediction (Fidelity::analytic) looks at.
enum class CostModel : std::uint8_t {
  alpha_beta_contention,  ///< messages take alpha + bytes / rate and wait for each other at the links of their real routes
  alpha_beta,             ///< messages take what they take on an idle wafer
  roofline,               ///< messages cost nothing: operations only
};
const char* to_string(Fidelity fidelity);
const char* to_string(CostModel model);

struct NetworkSpec {
  Fidelity fidelity = Fidelity::packet;
  DataSize packet_bytes{64ULL << 10};
  CostModel cost_model = CostModel::alpha_beta_contention;
};

/// What packets see of a link.
struct LinkModel {
  Rational bytes_per_cycle;
  Cycle cycles = 1;         ///< L
  Cycle credit_cycles = 1;  ///< Lc
};

/// Everything of the machine that costs time, resolved to cycles and bytes per cycle, and what costs energy. Made once from the specs; the
/// simulator and the cost formulas see only this.
struct HardwareModel {
  Frequency clock;

  // Matrix and vector engines of one tile
  topology::Shape array;
  Rational arrays;                   ///< systolic arrays, may be fractional
  Dataflow dataflow = Dataflow::weight_stationary;
  Rational matrix_flops_per_cycle;   ///< peak: 2 rows cols arrays
  Rational vector_flops_per_cycle;
  Cycle launch_overhead = 0;
  std::string kernel_table;          ///< path of measured kernels, empty = none

  // Memory
  Bytes sram_capacity = 0;
  std::optional<Rational> sram_bytes_per_cycle;  ///< absent = unlimited
  Bytes dram_capacity = 0;           ///< of one die; 0 = no DRAM
  Rational dram_bytes_per_cycle;     ///< of one die
  topology::Shape dram_die{1, 1};

  // Network
  Fidelity fidelity = Fidelity::packet;
  CostModel cost_model = CostModel::alpha_beta_contention;  ///< of the fidelity `analytic` only
  std::string routing;
  int virtual_channels = 1;
  Bytes packet_bytes = 0;
  Bytes vc_buffer_bytes = 0;
  Rational link_bytes_per_cycle;
  Rational injection_bytes_per_cycle;
  Rational ejection_bytes_per_cycle;
  NicPorts nic_ports = NicPorts::per_direction;
  Cycle router_cycles = 0;           ///< R
  Cycle turn_cycles = 0;             ///< added to R at a turn
  Cycle link_cycles = 1;             ///< L
  Cycle credit_cycles = 1;           ///< Lc
  bool credits_take_link = false;    ///< Lc of a link that is not plain is its own latency
  std::optional<Cycle> wafer_cycles;  ///< of a link between wafers, where there are several
  Cycle border_cycles = 0;           ///< that a link is longer for each border of a reticle
  std::optional<Cycle> wrap_cycles;  ///< of the link that closes a straight ring
  std::optional<Cycle> express_cycles;  ///< of an express link; absent = as its length goes
  Cycle injection_cycles = 0;        ///< Linj
  Cycle ejection_cycles = 0;         ///< Leject
  Cycle message_overhead = 0;
  Cycle stream_cycles = 1;           ///< from the arrival of a packet of a streamed message to its use
  FlitModel flit;                    ///< of the fidelity `flit` only

  EnergySpec energy;

  /// `link_bytes_per_cycle`, `link_cycles` and `credit_cycles` are those of a plain link; a longer link takes longer in
  /// proportion, one of a folded ring twice as long.
  LinkModel link(const topology::LinkClass& link_class) const;
  double seconds(Cycle cycles) const { return static_cast<double>(cycles) / clock.hertz.to_double(); }
  /// DRAM bytes of one tile: its share of its die.
  Bytes dram_capacity_per_tile() const { return dram_capacity / static_cast<Bytes>(dram_die.size()); }
};

/// Resolves specs to a model; durations become ceil(duration * clock) cycles. Throws PlanError when a value is out of its
/// range (L < 1, Lc < 1, a VC buffer smaller than a packet, a rate of zero).
HardwareModel resolve_hardware(const WaferSpec& wafer, const RouterSpec& router, const NetworkSpec& network);

/// Default VC buffer: the smallest k >= 2 packets with (k - 1) S >= L + R + Lc (R with a turn), S = serialization of a full
/// packet in exact cycles; one cycle more on the right when S is not whole (docs/model-costs.md, "Messages").
Bytes default_vc_buffer(Bytes packet_bytes, const Rational& link_bytes_per_cycle, Cycle router, Cycle link, Cycle credit);

}  // namespace wafersim::models

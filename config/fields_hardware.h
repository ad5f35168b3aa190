#pragma once

#include "config/key.h"
#include "models/hardware.h"
#include "topology/routing_policy.h"

/// `fields(visit, spec)` names every key of a spec in the order of the file: visit(key, member). Visitors
/// read, write and document; they live in this namespace, where argument-dependent lookup finds these
/// functions. Besides calls, a visitor has
///   alternative(key, member, chosen)  one of several ways to say the same; only the chosen one is written
///   fixed(key, word)                  a key of which only one value is available in this version
///   source(key)                       names where values come from; resolved before the fields are read
namespace wafersim::config {

template <class Visitor>
void fields(Visitor& visit, models::MatrixSpec& spec) {
  visit(Key{.name = "shape", .doc = "Multiply-accumulate units of one systolic array."}, spec.shape);
  visit.alternative(
      Key{.name = "peak",
          .doc = "Peak rate of the matrix engine; the number of arrays follows and may be fractional.",
          .positive = true,
          .default_text = "from `arrays`"},
      spec.peak, spec.peak.has_value());
  visit.alternative(Key{.name = "arrays", .doc = "Number of systolic arrays; instead of `peak`.", .min = 1},
                    spec.arrays, !spec.peak.has_value());
  visit(Key{.name = "dataflow", .doc = "Which operand of a GEMM stays in the array."}, spec.dataflow);
}

template <class Visitor>
void fields(Visitor& visit, models::VectorSpec& spec) {
  visit(Key{.name = "peak", .doc = "Peak rate of the vector engine.", .positive = true}, spec.peak);
}

template <class Visitor>
void fields(Visitor& visit, models::CoreSpec& spec) {
  visit(Key{.name = "matrix", .doc = "The matrix engine."}, spec.matrix);
  visit(Key{.name = "vector",
            .doc = "The vector engine: element-wise work, norms, softmax, optimizer, reductions."},
        spec.vector);
  visit(Key{.name = "launch_overhead", .doc = "Added to every operation."}, spec.launch_overhead);
  visit(Key{.name = "table",
            .doc = "CSV of measured kernels that replaces the systolic formula for the shapes it lists.",
            .absent = "none",
            .is_path = true},
        spec.table);
}

template <class Visitor>
void fields(Visitor& visit, models::SramSpec& spec) {
  visit(Key{.name = "capacity", .doc = "SRAM of a tile.", .positive = true}, spec.capacity);
  visit(Key{.name = "bandwidth", .doc = "SRAM bandwidth of a tile.", .positive = true, .absent = "unlimited"},
        spec.bandwidth);
}

template <class Visitor>
void fields(Visitor& visit, models::DramSpec& spec) {
  visit(Key{.name = "capacity", .doc = "DRAM of one die.", .required = true, .positive = true},
        spec.capacity);
  visit(Key{.name = "bandwidth", .doc = "DRAM bandwidth of one die.", .required = true, .positive = true},
        spec.bandwidth);
  visit(Key{.name = "die", .doc = "Tiles that share one die's DRAM."}, spec.die);
}

template <class Visitor>
void fields(Visitor& visit, models::LinkSpec& spec) {
  visit(Key{.name = "bandwidth", .doc = "Of each link in each direction.", .positive = true}, spec.bandwidth);
  visit(Key{.name = "latency",
            .doc = "From a router's grant to the next router; at least one cycle.",
            .positive = true},
        spec.latency);
}

template <class Visitor>
void fields(Visitor& visit, models::ReticleSpec& spec) {
  visit(Key{.name = "every", .doc = "Tiles of one reticle, the first in the north-west corner.", .required = true, .square = true},
        spec.every);
  visit(Key{.name = "bandwidth",
            .doc = "Of each link over a border in each direction; auto is the link's.",
            .positive = true,
            .absent = "auto"},
        spec.bandwidth);
  visit(Key{.name = "latency",
            .doc = "Of a link over a border, at least the link's, which auto is.",
            .positive = true,
            .absent = "auto"},
        spec.latency);
}

template <class Visitor>
void fields(Visitor& visit, models::WafersSpec& spec) {
  visit(Key{.name = "grid", .doc = "Rows and columns of wafers.", .required = true}, spec.grid);
  visit(Key{.name = "bandwidth",
            .doc = "Of each link from a wafer to the next in each direction.",
            .required = true,
            .positive = true},
        spec.bandwidth);
  visit(Key{.name = "latency", .doc = "Of such a link; at least one cycle.", .required = true, .positive = true}, spec.latency);
}

template <class Visitor>
void fields(Visitor& visit, models::ExpressSpec& spec) {
  visit(Key{.name = "span",
            .doc = "Routers from one end to the other, along columns and along rows; 1 is none in that dimension.",
            .required = true,
            .square = true},
        spec.span);
  visit(Key{.name = "every",
            .doc = "Routers that have them, counted from the north-west corner; 1 is all, the span only those that links end at.",
            .square = true},
        spec.every);
  visit(Key{.name = "bandwidth",
            .doc = "Of each express link in each direction; auto is the link's.",
            .positive = true,
            .absent = "auto"},
        spec.bandwidth);
  visit(Key{.name = "latency",
            .doc = "Of an express link; auto is that of plain links over the same tiles.",
            .positive = true,
            .absent = "auto"},
        spec.latency);
}

template <class Visitor>
void fields(Visitor& visit, models::NicSpec& spec) {
  visit(Key{.name = "ports",
            .doc = "One injection and ejection port for each mesh direction, or a single one of each."},
        spec.ports);
  visit(Key{.name = "injection_bandwidth",
            .doc = "Per port; auto is the link's.",
            .positive = true,
            .absent = "auto"},
        spec.injection_bandwidth);
  visit(Key{.name = "ejection_bandwidth",
            .doc = "Per port; auto is the link's.",
            .positive = true,
            .absent = "auto"},
        spec.ejection_bandwidth);
  visit(Key{.name = "injection_latency", .doc = "From the network interface to its router."},
        spec.injection_latency);
  visit(Key{.name = "ejection_latency", .doc = "From the router to the network interface."},
        spec.ejection_latency);
  visit(Key{.name = "message_overhead", .doc = "Added for each message at each end."}, spec.message_overhead);
  visit(Key{.name = "stream_latency",
            .doc = "Of messages that are used as they come in: from a packet's arrival until the core has stored or added it and "
                   "may send it on."},
        spec.stream_latency);
}

template <class Visitor>
void fields(Visitor& visit, models::EnergySpec& spec) {
  const auto figure = [&visit](const char* name, const char* doc, auto& value) {
    visit(Key{.name = name, .doc = doc, .absent = "none"}, value);
  };
  figure("matrix", "Of a FLOP of the matrix engine.", spec.matrix);
  figure("vector", "Of a FLOP of the vector engine.", spec.vector);
  figure("sram", "Of a bit that is read from SRAM or written to it.", spec.sram);
  figure("dram", "Of a bit that is read from DRAM or written to it.", spec.dram);
  figure("link", "Of a bit over a link between neighbouring tiles; longer links in proportion to their length.", spec.link);
  figure("reticle_link", "The same of a link over a border of reticles, at least the link's, which none is.", spec.reticle_link);
  figure("wafer_link", "Of a bit over a link from wafer to wafer; none is the link's.", spec.wafer_link);
  figure("express_link", "Of a bit over an express link; none is that of plain links over the same tiles.", spec.express_link);
  figure("router", "Of a bit that passes a router, from an input to an output.", spec.router);
  figure("nic", "Of a bit that leaves a tile by its network interface, or comes in by it.", spec.nic);
  figure("static", "Of each used tile, whatever it does.", spec.standing);
}

template <class Visitor>
void fields(Visitor& visit, models::WaferSpec& spec) {
  visit.source(
      Key{.name = "preset", .doc = "A file of `scenarios/hardware/`, by name or path; keys beside it win."});
  visit(Key{.name = "mesh", .doc = "Tiles of a wafer.", .required = true}, spec.mesh.shape);
  visit(Key{.name = "wafers", .doc = "Several such wafers side by side, whose tiles make one mesh.", .absent = "none"},
        spec.wafers);
  visit(
      Key{.name = "clock", .doc = "Clock of the whole wafer; a cycle is the unit of time.", .positive = true},
      spec.clock);
  visit(Key{.name = "compute", .doc = "The core of a tile."}, spec.core);
  visit(Key{.name = "sram", .doc = "The SRAM of a tile."}, spec.sram);
  visit(Key{.name = "dram", .doc = "The DRAM of a die of one or more tiles.", .absent = "none"}, spec.dram);
  visit(Key{.name = "link", .doc = "The links between neighbouring tiles."}, spec.link);
  visit(Key{.name = "reticle",
            .doc = "Rectangles of tiles; links over their borders are other than `wafer.link`.",
            .absent = "none"},
        spec.reticle);
  visit(Key{.name = "concentration",
            .doc = "Tiles that share a router, at most 8; such a tile has one port: `nic.ports` is single.",
            .square = true},
        spec.mesh.concentration);
  visit(Key{.name = "express", .doc = "Further links that skip routers.", .absent = "none"}, spec.express);
  visit(Key{.name = "topology", .doc = "Which dimensions are closed to rings: none, both, the rows (x) or the columns (y)."},
        spec.mesh.wrap);
  visit(Key{.name = "wrap_latency",
            .doc = "Of the link that closes a ring; folded lays rings out and back, with all links twice as long.",
            .positive = true,
            .absent = "folded"},
        spec.wrap_latency);
  visit(Key{.name = "nic", .doc = "The network interface of a tile."}, spec.nic);
  visit(Key{.name = "energy", .doc = "What work costs; parts without a figure are [not modelled](model.md#energy)."},
        spec.energy);
  visit(Key{.name = "dead_tiles", .doc = "Tiles without core, router and links."}, spec.mesh.dead_tiles);
  visit(Key{.name = "dead_links", .doc = "Links between neighbours that are dead in both directions."},
        spec.mesh.dead_links);
}

template <class Visitor>
void fields(Visitor& visit, models::PipelineStages& spec) {
  visit(Key{.name = "routing", .doc = "Route computation; 0 looks ahead.", .min = 0, .max = 1000}, spec.routing);
  visit(Key{.name = "vc_allocation", .doc = "Allocation of a virtual channel behind the output.", .min = 1, .max = 1000},
        spec.vc_allocation);
  visit(Key{.name = "switch_allocation", .doc = "Allocation of the crossbar.", .min = 1, .max = 1000},
        spec.switch_allocation);
  visit(Key{.name = "traversal", .doc = "Through the crossbar.", .min = 0, .max = 1000}, spec.traversal);
  visit(Key{.name = "credit", .doc = "Handling of a credit, on top of `router.credit_latency`.", .min = 0, .max = 1000},
        spec.credit);
  visit(Key{.name = "speculative", .doc = "The crossbar is bid for while a virtual channel is; both take one cycle then."},
        spec.speculative);
}

/// The keys of `router` that say how flits are handled.
template <class Visitor>
void flit_fields(Visitor& visit, models::FlitRouterSpec& spec) {
  visit(Key{.name = "flit_bytes",
            .doc = "Size of a flit; auto is what a link carries in a cycle, rounded up.",
            .positive = true,
            .absent = "auto"},
        spec.flit_bytes);
  visit(Key{.name = "vc_buffer_flits",
            .doc = "Instead of `router.vc_buffer`, in flits; auto is the smallest that keeps a link busy.",
            .min = 1,
            .max = 65535,
            .absent = "auto"},
        spec.vc_buffer_flits);
  visit(Key{.name = "pipeline_preset",
            .doc = "Instead of `router.pipeline`: p5 has a stage each for routing, VC allocation, switch allocation, traversal "
                   "and link; p4 looks ahead for the route; p3 also allocates the switch speculatively.",
            .absent = "none"},
        spec.preset);
  visit(Key{.name = "pipeline_stages", .doc = "Instead of `router.pipeline`: cycles of each stage.", .absent = "none"},
        spec.stages);
  visit(Key{.name = "allocator", .doc = "Of virtual channels and crossbar, with flits."}, spec.allocator);
  visit(Key{.name = "switching",
            .doc = "With flits: wormhole, or cut_through, where a packet needs room for all of it and keeps its output; auto is "
                   "cut_through for a router without a pipeline, else wormhole.",
            .absent = "auto"},
        spec.switching);
}

template <class Visitor>
void fields(Visitor& visit, models::RouterSpec& spec) {
  visit(
      Key{.name = "routing",
          .doc = "How packets find their way, see [below](#routing).",
          .words = topology::routing_policy_names()},
      spec.routing);
  visit(Key{.name = "virtual_channels", .doc = "Virtual channels of each input; at most 12 with packets.", .min = 1, .max = 16},
        spec.virtual_channels);
  visit.alternative(Key{.name = "pipeline", .doc = "From a packet head's arrival to its first bid for an output."},
                    spec.pipeline, !spec.flit.named_stages());
  visit(Key{.name = "turn", .doc = "Added to the pipeline where a packet turns: it leaves along another dimension than it came."},
        spec.turn);
  visit(Key{.name = "credit_latency",
            .doc = "Until a freed buffer is known upstream, at least one cycle; auto is the link's latency.",
            .positive = true,
            .absent = "auto"},
        spec.credit_latency);
  visit.alternative(Key{.name = "vc_buffer",
                        .doc = "Buffer of each virtual channel, at least one packet; auto is the smallest that keeps a "
                               "link busy.",
                        .positive = true,
                        .absent = "auto"},
                    spec.vc_buffer, !spec.flit.vc_buffer_flits);
  flit_fields(visit, spec.flit);
}

template <class Visitor>
void fields(Visitor& visit, models::NetworkSpec& spec) {
  visit(Key{.name = "fidelity",
            .doc = "Packets contend hop by hop, or their flits do, or (ideal) messages arrive in the cycle they are sent, or "
                   "(analytic) nothing is simulated and the iteration is predicted."},
        spec.fidelity);
  visit(Key{.name = "cost_model",
            .doc = "With fidelity analytic: messages wait for each other at links (alpha_beta_contention), find them idle "
                   "(alpha_beta), or cost nothing (roofline)."},
        spec.cost_model);
  visit(Key{.name = "packet_bytes",
            .doc = "Messages are cut into packets of at most this size.",
            .positive = true},
        spec.packet_bytes);
}

}  // namespace wafersim::config

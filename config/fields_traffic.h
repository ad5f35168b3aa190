#pragma once

#include "config/codec_traffic.h"
#include "config/key.h"
#include "workloads/synthetic_traffic.h"

namespace wafersim::config {

template <class Visitor>
void fields(Visitor& visit, workloads::SweepSpec& spec) {
  visit(Key{.name = "points", .doc = "Loads below saturation that a sweep measures.", .min = 1, .max = 1000}, spec.points);
  visit(Key{.name = "precision", .doc = "Saturation is searched for to this part of itself.", .max = 1, .positive = true},
        spec.precision);
}

template <class Visitor>
void fields(Visitor& visit, workloads::TrafficSpec& spec) {
  visit(Key{.name = "pattern", .doc = "Where packets go."}, spec.pattern);
  visit(Key{.name = "file",
            .doc = "CSV of a permutation (source, destination) or a trace (cycle, source, destination, bytes).",
            .absent = "none",
            .is_path = true},
        spec.file);
  visit(Key{.name = "hotspots", .doc = "Tiles of `hotspot` that attract packets."}, spec.hotspots);
  visit(Key{.name = "hotspot_share", .doc = "Share of the packets that goes to them; the rest is uniform.", .max = 1},
        spec.hotspot_share);
  visit(Key{.name = "load", .doc = "Flits that each tile makes per cycle.", .positive = true}, spec.load);
  visit(Key{.name = "packet_flits", .doc = "Size of packets; of a list each entry is equally likely."}, spec.packet_flits);
  visit(Key{.name = "injection", .doc = "Packets at random cycles, or (on_off) so in bursts."}, spec.injection);
  visit(Key{.name = "burst_load", .doc = "With on_off: flits per cycle within a burst.", .positive = true}, spec.burst_load);
  visit(Key{.name = "burst_cycles", .doc = "With on_off: mean length of a burst in cycles.", .min = 1}, spec.burst_cycles);
  visit(Key{.name = "warmup", .doc = "Time before packets are measured."}, spec.warmup);
  visit(Key{.name = "measurement", .doc = "Packets made in this time are measured.", .positive = true}, spec.measurement);
  visit(Key{.name = "drain", .doc = "Time that measured packets have to arrive after it."}, spec.drain);
  visit(Key{.name = "seeds", .doc = "Runs, with random numbers of their own each.", .min = 1, .max = 10000}, spec.seeds);
  visit(Key{.name = "sweep", .doc = "What `--sweep` does."}, spec.sweep);
}

}  // namespace wafersim::config

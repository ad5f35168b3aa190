#pragma once

#include "config/fields_collective.h"
#include "config/fields_hardware.h"
#include "config/fields_kernel.h"
#include "config/fields_model.h"
#include "config/fields_plan.h"
#include "config/fields_traffic.h"
#include "config/scenario.h"

namespace wafersim::config {

template <class Visitor>
void fields(Visitor& visit, Scenario& scenario) {
  visit(Key{.name = "name", .doc = "Name of the scenario in reports.", .default_text = "the file's name"},
        scenario.name);
  visit(Key{.name = "seed", .doc = "Seed of every random choice.", .min = 0}, scenario.seed);
  visit(
      Key{.name = "wafer", .doc = "The machine: its mesh of tiles and what each tile has.", .required = true},
      scenario.wafer);
  visit(Key{.name = "router", .doc = "The routers of the mesh."}, scenario.router);
  visit(Key{.name = "network", .doc = "How the network is simulated."}, scenario.network);
  visit(Key{.name = "traffic",
            .doc = "Packets made at random, for `wafersim traffic`: the network alone. A scenario that has it needs no model, and "
                   "without one only `traffic` takes it.",
            .absent = "none"},
        scenario.traffic);
  visit(Key{.name = "collective",
            .doc = "A reduction or broadcast by cores that add or store what arrives as it arrives, for `wafersim collective`. As "
                   "with `traffic`, a scenario that has it needs no model.",
            .absent = "none"},
        scenario.collective);
  visit(Key{.name = "kernel",
            .doc = "A stencil, matrix-vector or matrix product on a rectangle of tiles, for `wafersim kernel`. As with `traffic`, a "
                   "scenario that has it needs no model.",
            .absent = "none"},
        scenario.kernel);
  visit(Key{.name = "model", .doc = "The transformer that is trained.", .required = !scenario.traffic && !scenario.collective && !scenario.kernel},
        scenario.model);
  visit(Key{.name = "training", .doc = "How it is trained."}, scenario.training);
  visit(Key{.name = "plan", .doc = "How training is split over tiles."}, scenario.plan);
  visit(Key{.name = "placement",
            .doc = "Which memory each class of data lives in, where a tile has SRAM and DRAM."},
        scenario.placement);
}

}  // namespace wafersim::config

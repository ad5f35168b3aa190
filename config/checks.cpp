#include "config/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/words.h"

namespace wafersim::config {
namespace {

class Checker {
 public:
  Checker(const ConfigNode& tree, const Scenario& scenario, Problems& problems)
      : tree_(tree), scenario_(scenario), problems_(problems) {}

  void check_all() {
    check_mesh();
    check_matrix();
    check_energy();
    check_network();
    check_cost_model();
    check_heads();
    check_positions();
    check_vocab();
    check_experts();
    check_plan();
    check_placement();
    check_flits();
    check_traffic();
    check_collective();
    check_kernel();
  }

 private:
  bool given(const char* path) const { return tree_.find_path(path) != nullptr; }

  /// None of these keys has been reported, so that their values may be compared.
  bool sound(std::initializer_list<const char*> paths) const {
    return std::none_of(paths.begin(), paths.end(),
                        [&](const char* path) { return problems_.concerns(path); });
  }

  /// Reports at the value of `path`.
  void fail(const std::string& path, const std::string& message) {
    problems_.add(tree_.locate(path), path, message);
  }

  void fail_item(const std::string& path, std::size_t index, const std::string& message) {
    const ConfigNode* list = tree_.find_path(path);
    problems_.add(list->children[index].where, fmt::format("{}[{}]", path, index), message);
  }

  bool in_mesh(const topology::Coord& tile) const {
    const topology::Shape shape = models::all_tiles(scenario_.wafer);
    return tile.x < shape.cols && tile.y < shape.rows;
  }

  void check_mesh() {
    if (!given("wafer.mesh") || !sound({"wafer.mesh"})) return;
    const models::WaferSpec& wafer = scenario_.wafer;
    const topology::Shape& shape = wafer.mesh.shape;
    const std::string mesh = to_string(models::all_tiles(wafer));
    if (sound({"wafer.dead_tiles", "wafer.wafers"})) {
      for (std::size_t i = 0; i < wafer.mesh.dead_tiles.size(); ++i) {
        const topology::Coord& tile = wafer.mesh.dead_tiles[i];
        if (in_mesh(tile)) continue;
        fail_item("wafer.dead_tiles", i,
                  fmt::format("tile_{}_{} is outside the mesh {}", tile.x, tile.y, mesh));
      }
    }
    check_routers();
    if (sound({"wafer.dead_links", "wafer.concentration", "wafer.express", "wafer.wafers"})) {
      topology::MeshSpec with_express = wafer.mesh;
      with_express.shape = models::all_tiles(wafer);
      if (wafer.express) with_express.express.emplace(topology::ExpressGrid{wafer.express->span, wafer.express->every});
      for (std::size_t i = 0; i < wafer.mesh.dead_links.size(); ++i) {
        const auto& [a, b] = wafer.mesh.dead_links[i];
        if (in_mesh(a) && in_mesh(b) && topology::are_neighbours(with_express, a, b)) continue;
        fail_item("wafer.dead_links", i, fmt::format("does not join two neighbours of the mesh {}", mesh));
      }
    }
    if (given("wafer.wrap_latency") && wafer.wrap_latency && wafer.mesh.wrap == topology::Wrap::none &&
        sound({"wafer.wrap_latency", "wafer.topology"})) {
      fail("wafer.wrap_latency", "is only for rings; wafer.topology is mesh");
    }
    if (wafer.dram && sound({"wafer.dram"})) {
      const topology::Shape& die = wafer.dram->die;
      if (shape.rows % die.rows != 0 || shape.cols % die.cols != 0) {
        fail("wafer.dram.die",
             fmt::format("the mesh {} is not made of whole dies of {}x{}", to_string(shape), die.rows, die.cols));
      }
    }
  }

  /// Of concentrated meshes and express links; says what topology::Mesh would, and where.
  void check_routers() {
    const models::WaferSpec& wafer = scenario_.wafer;
    const topology::Shape& shape = wafer.mesh.shape;
    const topology::Shape& sharing = wafer.mesh.concentration;
    if (given("wafer.concentration") && sound({"wafer.concentration"})) {
      if (shape.rows % sharing.rows != 0 || shape.cols % sharing.cols != 0) {
        fail("wafer.concentration", fmt::format("the mesh {}x{} is not made of whole rectangles of {}x{} tiles", shape.rows,
                                                shape.cols, sharing.rows, sharing.cols));
      } else if (sharing.size() > topology::kMaxConcentration) {
        fail("wafer.concentration", fmt::format("{} tiles cannot share a router; at most {} can", sharing.size(),
                                                topology::kMaxConcentration));
      } else if (sharing.size() > 1 && wafer.nic.ports != models::NicPorts::single && sound({"wafer.nic.ports"})) {
        fail("wafer.concentration", "tiles that share a router have one port each; valid with wafer.nic.ports: single");
      }
    }
    if (wafer.wafers && wafer.wafers->grid.size() > 1 && sound({"wafer.wafers"})) {
      if (wafer.mesh.wrap != topology::Wrap::none) {
        fail("wafer.wafers", "several wafers are one mesh; valid with wafer.topology: mesh");
      }
      if (wafer.express) fail("wafer.wafers", "express links do not lead from wafer to wafer; valid with wafer.express: none");
    }
    if (!wafer.express || !sound({"wafer.express"})) return;
    const topology::Shape &span = wafer.express->span, &every = wafer.express->every;
    if (wafer.mesh.wrap != topology::Wrap::none) {
      fail("wafer.express", "is only for wafer.topology: mesh");
    } else if (span.size() < 2) {
      fail("wafer.express.span", "a span of 1 is no express link; at least one of the two numbers has to be 2 or more");
    } else if ((span.rows > 1 && span.rows % every.rows != 0) || (span.cols > 1 && span.cols % every.cols != 0)) {
      fail("wafer.express.span",
           fmt::format("links over {}x{} routers that begin at every {}x{} would end between these; the span has to be a multiple of "
                       "wafer.express.every", span.rows, span.cols, every.rows, every.cols));
    }
  }

  void check_matrix() {
    if (!given("wafer.compute.matrix.peak") || !given("wafer.compute.matrix.arrays")) return;
    fail("wafer.compute.matrix.arrays", "wafer.compute.matrix.peak is given too; give one of the two");
  }

  void check_energy() {
    const models::EnergySpec& energy = scenario_.wafer.energy;
    if (!sound({"wafer.energy.link", "wafer.energy.reticle_link", "wafer.energy.wafer_link", "wafer.energy.express_link"})) {
      return;
    }
    if (!energy.link) {
      for (const auto& [value, key] : {std::pair{&energy.reticle_link, "wafer.energy.reticle_link"},
                                       std::pair{&energy.wafer_link, "wafer.energy.wafer_link"},
                                       std::pair{&energy.express_link, "wafer.energy.express_link"}}) {
        if (*value) fail(key, "plain links have no figure; give wafer.energy.link too");
      }
    } else if (energy.reticle_link && energy.reticle_link->joules < energy.link->joules) {
      fail("wafer.energy.reticle_link", fmt::format("'{}' is less than wafer.energy.link; valid: {} or more",
                                                    to_string(*energy.reticle_link), to_string(*energy.link)));
    }
  }

  void check_network() {
    if (!scenario_.router.vc_buffer || !sound({"router.vc_buffer", "network.packet_bytes"})) return;
    const bool flits_apart = scenario_.network.fidelity == models::Fidelity::flit &&
                             scenario_.router.switching() == models::Switching::wormhole;
    if (flits_apart || scenario_.router.flit.vc_buffer_flits) return;
    if (scenario_.router.vc_buffer->bytes >= scenario_.network.packet_bytes.bytes) return;
    if (scenario_.traffic && !scenario_.has_model()) return;  // whose packets have sizes of their own
    fail("router.vc_buffer",
         fmt::format("'{}' is smaller than a packet (network.packet_bytes is {})",
                     to_string(*scenario_.router.vc_buffer), to_string(scenario_.network.packet_bytes)));
  }

  void check_cost_model() {
    const models::NetworkSpec& network = scenario_.network;
    if (network.fidelity == models::Fidelity::analytic || !sound({"network.fidelity", "network.cost_model"})) return;
    if (network.cost_model == models::CostModel::alpha_beta_contention) return;
    fail("network.cost_model",
         fmt::format("'{}' is for predictions; it needs network.fidelity: analytic", word_of(network.cost_model)));
  }

  /// Of two keys that say the same, `winner` wins over what a preset says; the scenario itself gives only one.
  void refuse_beside(const std::string& key, const char* winner) {
    const ConfigNode* node = tree_.find_path(key);
    if (node == nullptr || !sound({key.c_str()})) return;
    const std::string& file = node->where.file;
    if (file != tree_.where.file && !file.starts_with("--set")) return;
    fail(key, fmt::format("{} is given too; give one of the two", winner));
  }

  /// What says the same twice, or is for the other kind of router.
  void check_flits() {
    const models::RouterSpec& router = scenario_.router;
    if (router.vc_buffer && router.flit.vc_buffer_flits) refuse_beside("router.vc_buffer", "router.vc_buffer_flits");
    const bool preset = router.flit.preset.has_value();
    if (preset && router.flit.stages) fail("router.pipeline_stages", "router.pipeline_preset is given too; give one of the two");
    if (router.flit.named_stages()) {
      refuse_beside("router.pipeline", preset ? "router.pipeline_preset" : "router.pipeline_stages");
    }
    constexpr int kMostPacketVcs = 12;
    if (scenario_.network.fidelity != models::Fidelity::flit && router.virtual_channels > kMostPacketVcs &&
        sound({"router.virtual_channels", "network.fidelity"})) {
      fail("router.virtual_channels", fmt::format("'{}' is out of range; valid: 1 to {} (16 with network.fidelity: flit)",
                                                  router.virtual_channels, kMostPacketVcs));
    }
  }

  void check_traffic() {
    if (!scenario_.traffic || !sound({"traffic"})) return;
    const workloads::TrafficSpec& traffic = *scenario_.traffic;
    using workloads::SyntheticPattern;
    const bool from_file = traffic.pattern == SyntheticPattern::permutation || traffic.pattern == SyntheticPattern::trace;
    if (from_file && traffic.file.empty()) fail("traffic.file", "missing; permutation and trace need it");
    if (!from_file && !traffic.file.empty()) fail("traffic.file", "is only for the patterns permutation and trace");
    if (traffic.pattern == SyntheticPattern::hotspot && traffic.hotspots.empty()) {
      fail("traffic.hotspots", "missing; hotspot needs at least one tile");
    }
    if (traffic.pattern != SyntheticPattern::hotspot && !traffic.hotspots.empty()) {
      fail("traffic.hotspots", "is only for the pattern hotspot");
    }
    if (traffic.pattern == SyntheticPattern::trace) return;
    check_load("traffic.load", traffic.load);
    if (traffic.injection == workloads::InjectionProcess::on_off) {
      check_load("traffic.burst_load", traffic.burst_load);
      if (traffic.burst_load <= traffic.load && sound({"traffic.load", "traffic.burst_load"})) {
        fail("traffic.burst_load", fmt::format("{} must be more than traffic.load ({})", traffic.burst_load.to_string(),
                                               traffic.load.to_string()));
      }
      return;
    }
    for (const char* key : {"traffic.burst_load", "traffic.burst_cycles"}) {
      if (given(key)) fail(key, "is only for traffic.injection: on_off");
    }
  }

  void check_collective() {
    if (!scenario_.collective || !sound({"collective", "wafer.mesh"}) || !given("wafer.mesh")) return;
    const auto fault = workloads::fault_of(*scenario_.collective, models::all_tiles(scenario_.wafer));
    if (fault) fail("collective." + fault->key, fault->message);
  }

  void check_kernel() {
    if (!scenario_.kernel || !sound({"kernel", "wafer.mesh"}) || !given("wafer.mesh")) return;
    const auto fault = workloads::fault_of(*scenario_.kernel, models::all_tiles(scenario_.wafer));
    if (fault) fail(fault->key.empty() ? "kernel" : "kernel." + fault->key, fault->message);
  }

  /// A source makes at most a packet a cycle.
  void check_load(const char* key, const Rational& load) {
    const Rational most = scenario_.traffic->packet_flits.mean();
    if (load <= most || !sound({key, "traffic.packet_flits"})) return;
    fail(key, fmt::format("{} flits a cycle in packets of {} is more than a packet a cycle; valid: at most {}",
                          load.to_string(), most.to_string(), most.to_string()));
  }

  void check_heads() {
    const models::TransformerSpec& model = scenario_.model;
    if (model.heads < 1 || !sound({"model.heads"})) return;
    if (given("model.kv_heads") && sound({"model.kv_heads"}) && model.heads % model.kv_heads != 0) {
      fail("model.kv_heads", fmt::format("{} does not divide model.heads {}", model.kv_heads, model.heads));
    }
    const bool derived = !given("model.head_dim") && model.hidden > 0 && sound({"model.hidden"});
    if (derived && model.hidden % model.heads != 0) {
      fail("model.heads",
           fmt::format("{} does not divide model.hidden {}; give model.head_dim where that is meant",
                       model.heads, model.hidden));
    }
  }

  void check_positions() {
    const models::TransformerSpec& model = scenario_.model;
    if (model.positions != models::Positions::learned || !model.embedding || problems_.is_incomplete("model"))
      return;
    if (!sound({"model.positions", "model.embedding", "model.context", "model.sequence"})) return;
    if (!given("model.context")) {
      if (given("model")) fail("model.context", "missing; learned positions need it");
    } else if (model.sequence > model.context) {
      fail("model.sequence", fmt::format("{} is longer than the {} learned positions of model.context",
                                         model.sequence, model.context));
    }
  }

  void check_vocab() {
    const models::TransformerSpec& model = scenario_.model;
    if (model.vocab > 0 || !given("model") || problems_.is_incomplete("model")) return;
    if (!(model.embedding || model.head) || !sound({"model.vocab", "model.embedding", "model.head"})) return;
    if (given("model.vocab")) {
      fail("model.vocab", "0 is only valid with model.embedding: false and model.head: false");
    } else {
      fail("model.vocab", "missing; the embedding and the head need it");
    }
  }

  void check_experts() {
    const models::TransformerSpec& model = scenario_.model;
    if (!sound({"model.experts", "model.top_k", "model.linear_bias"})) return;
    if (!model.routes()) {
      if (model.top_k > 0) fail("model.top_k", fmt::format("'{}' does not fit; without experts it is 0", model.top_k));
      if (sound({"model.capacity_factor"}) && model.capacity_factor != Rational(1)) {
        fail("model.capacity_factor",
             fmt::format("'{}' does not fit; without experts it is 1", model.capacity_factor.to_string()));
      }
      return;
    }
    if (model.top_k < 1) {
      fail("model.top_k", fmt::format("{}; experts need it, 1 to {}", given("model.top_k") ? "'0' is out of range" : "missing",
                                      model.experts));
    } else if (model.top_k > model.experts) {
      fail("model.top_k", fmt::format("'{}' is out of range; model.experts is {}", model.top_k, model.experts));
    }
    const Rational largest(model.experts, std::max<std::int64_t>(model.top_k, 1));
    if (sound({"model.top_k", "model.capacity_factor"}) && model.capacity_factor > largest) {
      fail("model.capacity_factor", fmt::format("'{}' is out of range; experts / top_k = {} makes a slot for every token",
                                                model.capacity_factor.to_string(), largest.to_string()));
    }
    if (model.linear_bias) {
      fail("model.linear_bias", fmt::format("{}; the MLPs of experts have no biases: false",
                                            given("model.linear_bias") ? "'true' does not fit" : "missing, that is true"));
    }
  }

  void check_plan() {
    check_sequence_parallel();
    check_sequence_group();
    check_stream_attention();
    check_operators();
    check_schedule();
    check_recompute();
    if (!sound({"plan.mapping.order", "plan"})) return;
    const workloads::PlanSpec& plan = scenario_.plan;
    std::vector<std::string> missing;
    for (const workloads::Axis axis : workloads::default_order()) {
      const auto times = std::count(plan.order.begin(), plan.order.end(), axis);
      if (times == 0 && plan.degree(axis) > 1) missing.emplace_back(workloads::to_string(axis));
      if (times > 1) fail("plan.mapping.order", fmt::format("lists {} {} times", workloads::to_string(axis), times));
    }
    if (!missing.empty()) fail("plan.mapping.order", "must also list " + join(missing));
  }

  void check_schedule() {
    if (!sound({"plan.schedule", "plan.virtual_stages", "training.clip_grad", "training.optimizer"})) return;
    const workloads::PlanSpec& plan = scenario_.plan;
    const char* schedule = workloads::to_string(plan.schedule);
    const bool interleaved = plan.schedule == workloads::PipelineSchedule::interleaved;
    if (interleaved && !given("plan.virtual_stages")) {
      fail("plan.virtual_stages", "missing; interleaved needs it, 2 or more");
    } else if (interleaved && plan.virtual_stages < 2) {
      fail("plan.virtual_stages",
           fmt::format("'{}' does not fit; with interleaved it is 2 or more", plan.virtual_stages));
    } else if (!interleaved && plan.virtual_stages > 1) {
      fail("plan.virtual_stages",
           fmt::format("'{}' does not fit; with {} it is 1", plan.virtual_stages, schedule));
    }
    const workloads::TrainingSpec& training = scenario_.training;
    const bool clips = training.clip_grad && training.optimizer != workloads::Optimizer::none;
    if (plan.schedule == workloads::PipelineSchedule::zb_h2 && clips) {
      fail("training.clip_grad",
           "'true' does not fit; with zb_h2 it is false: no stage waits for the norm of all gradients");
    }
  }

  void check_recompute() {
    const workloads::TrainingSpec& training = scenario_.training;
    if (!sound({"training.recompute"}) || training.recompute == models::Recompute::full) return;
    if (training.recompute_every == 1) return;
    fail("training.recompute.every",
         fmt::format("'{}' does not fit; with {} it is 1: only full recomputation keeps one input for several layers",
                     training.recompute_every, word_of(training.recompute)));
  }

  void check_sequence_parallel() {
    const ConfigNode* degree = tree_.find_path("plan.sp.degree");
    if (degree == nullptr || !sound({"plan.sp", "plan.tp"})) return;
    const std::int64_t value = std::stoll(degree->text);
    using workloads::SequenceParallel;
    const ConfigNode* group = tree_.find_path("plan.sp.group");
    const SequenceParallel kind = scenario_.plan.sp;
    if (kind == SequenceParallel::ulysses || kind == SequenceParallel::ring) return;
    if (value == 1) return;
    std::string rule = "without a kind of sequence parallelism it is 1";
    if (group != nullptr && group->text == "tatp") {
      if (value == scenario_.plan.tatp) return;
      rule = fmt::format("with group tatp it is plan.tatp ({}) or 1", scenario_.plan.tatp);
    } else if (kind == SequenceParallel::megatron) {
      if (value == scenario_.plan.tp) return;
      rule = fmt::format("with megatron it is plan.tp ({}) or 1", scenario_.plan.tp);
    }
    fail("plan.sp.degree", fmt::format("'{}' does not fit; {}", value, rule));
  }

  /// Megatron cuts the sequence over tp, the other kinds over ranks of their own or those of tensor streams, whose
  /// attention then is what the kind says.
  void check_sequence_group() {
    const ConfigNode* kind = tree_.find_path("plan.sp.kind");
    const ConfigNode* group = tree_.find_path("plan.sp.group");
    if (kind == nullptr || group == nullptr || kind->text == "none" || !sound({"plan.sp", "plan.tatp"})) return;
    const bool megatron = kind->text == "megatron";
    if (megatron != (group->text == "tp")) {
      return fail("plan.sp.group", fmt::format("'{}' does not fit; with {} it is {}", group->text, kind->text,
                                               megatron ? "tp" : "own or tatp"));
    }
    const ConfigNode* attention = tree_.find_path("plan.tatp.attention");
    if (attention == nullptr || group->text != "tatp") return;
    const std::string wanted = kind->text == "ring" ? "stream_kv" : "heads";
    if (attention->text == wanted) return;
    fail("plan.tatp.attention",
         fmt::format("'{}' does not fit; plan.sp {} with group tatp means {}", attention->text, kind->text, wanted));
  }

  /// Where inputs travel a rank has its heads of all tokens of its group, and attention exchanges nothing over it.
  void check_stream_attention() {
    if (!sound({"plan.tatp", "plan.sp"})) return;
    const bool inputs = scenario_.plan.stream.operand == workloads::StreamOperand::inputs;
    const ConfigNode* attention = tree_.find_path("plan.tatp.attention");
    const ConfigNode* group = tree_.find_path("plan.sp.group");
    if (attention != nullptr && inputs != (attention->text == "none")) {
      fail("plan.tatp.attention", fmt::format("'{}' does not fit; {}", attention->text,
                                              inputs ? "with plan.tatp.stream inputs it is none"
                                                     : "where weights travel it is stream_kv or heads"));
    }
    if (inputs && group != nullptr && group->text == "tatp") {
      fail("plan.sp.group", "'tatp' does not fit; with plan.tatp.stream inputs it is own");
    }
  }

  /// The degrees of an operator make the tiles of a model group.
  void check_operators() {
    if (!sound({"plan.operators", "plan.tp", "plan.tatp"})) return;
    const workloads::PlanSpec& plan = scenario_.plan;
    const std::int64_t tiles = std::int64_t{plan.tp} * plan.tatp;
    for (const workloads::Cut cut : {workloads::Cut::attention, workloads::Cut::mlp}) {
      const auto [tp, tatp] = plan.degrees(cut);
      if (std::int64_t{tp} * tatp == tiles) continue;
      std::int64_t nearest = std::min<std::int64_t>(tp, tiles);
      while (tiles % nearest != 0) --nearest;
      fail(fmt::format("plan.operators.{}", to_string(cut)),
           fmt::format("tp {} x tatp {} does not fit; a model group has plan.tp {} x plan.tatp {} = {} tiles: nearest valid tp "
                       "{} x tatp {}",
                       tp, tatp, plan.tp, plan.tatp, tiles, nearest, tiles / nearest));
    }
  }

  void check_placement() {
    if (scenario_.wafer.dram || !sound({"placement", "wafer"}) || problems_.is_incomplete("wafer")) return;
    const ConfigNode* section = tree_.find("placement");
    if (section == nullptr) return;
    for (const ConfigNode& member : section->children) {
      if (member.text == "dram")
        fail("placement." + member.key, "the wafer has no DRAM (wafer.dram is none)");
    }
  }

  const ConfigNode& tree_;
  const Scenario& scenario_;
  Problems& problems_;
};

}  // namespace

void complete(const ConfigNode& tree, Scenario& scenario) {
  models::TransformerSpec& model = scenario.model;
  const auto absent = [&](const char* path) { return tree.find_path(path) == nullptr; };
  if (absent("model.name")) model.name = "model";
  if (absent("model.kv_heads")) model.kv_heads = model.heads;
  if (absent("model.head_dim") && model.heads > 0) model.head_dim = model.hidden / model.heads;
  if (absent("model.context")) model.context = model.sequence;
  if (absent("training.clip_grad") && scenario.plan.schedule == workloads::PipelineSchedule::zb_h2) {
    scenario.training.clip_grad = false;
  }
}

void check_scenario(const ConfigNode& tree, const Scenario& scenario, Problems& problems) {
  Checker(tree, scenario, problems).check_all();
}

}  // namespace wafersim::config

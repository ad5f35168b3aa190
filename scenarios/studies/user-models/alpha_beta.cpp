// A cost model in C++ for `wafersim validate`: the same matrix work, and the gradients of a plan's replicas sent round a ring.
//   c++ -std=c++20 -O2 alpha_beta.cpp -o alpha_beta        (needs nlohmann-json3-dev)
// Reads a resolved scenario as JSON on standard input; prints {"cycles": ..., "breakdown": {...}}, so that the report can say
// which part of a prediction is wrong.
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

using Json = nlohmann::json;

namespace {

/// "8x16" -> 128
double tiles_of(const std::string& shape) {
  const std::size_t cross = shape.find('x');
  return std::stod(shape.substr(0, cross)) * std::stod(shape.substr(cross + 1));
}

/// Bytes per cycle of "256 GB/s", "1 TB/s" or "64 B/cycle".
double bytes_per_cycle(const std::string& text, double hertz) {
  const double value = std::stod(text);
  if (text.find("B/cycle") != std::string::npos) return value;
  return value * (text.find("TB") != std::string::npos ? 1e12 : text.find("GB") != std::string::npos ? 1e9 : 1e6) / hertz;
}

double hertz_of(const std::string& text) { return std::stod(text) * (text.find("GHz") != std::string::npos ? 1e9 : 1e6); }

}  // namespace

int main() {
  const Json scenario = Json::parse(std::cin);
  const Json &model = scenario.at("model"), &training = scenario.at("training"), &plan = scenario.at("plan");
  const Json &wafer = scenario.at("wafer"), &matrix = wafer.at("compute").at("matrix");
  const double hertz = hertz_of(wafer.at("clock")), hidden = model.at("hidden"), sequence = model.at("sequence");
  const double layers = model.at("layers"), ffn = model.at("ffn"), vocab = model.at("vocab");
  const double weights = layers * (4 * hidden * hidden + 2 * hidden * ffn), table = hidden * vocab;
  const double macs = weights + 2 * layers * hidden * sequence + table;
  const double dp = plan.at("dp"), tp = plan.at("tp"), pp = plan.at("pp"), tatp = plan.at("tatp").at("degree");
  const double batch = training.at("global_batch"), microbatches = batch / (dp * training.at("microbatch").get<double>());
  const double flops = 2 * tiles_of(matrix.at("shape")) * matrix.value("arrays", 1.0);

  const double compute = 6 * macs * batch * sequence / (dp * tp * pp * tatp) / flops;
  const double bubble = compute * (pp - 1) / microbatches;
  const double gradients = 2 * weights / (tp * pp * tatp);
  const double dp_cycles = 2 * (1 - 1 / dp) * gradients / bytes_per_cycle(wafer.at("link").at("bandwidth"), hertz);
  const double cycles = compute + bubble + dp_cycles;
  std::cout << Json{{"cycles", cycles},
                    {"breakdown",
                     {{"compute", compute / cycles},
                      {"exposed_communication", {{"dp", dp_cycles / cycles}}},
                      {"bubble", bubble / cycles},
                      {"memory_stall", 0},
                      {"idle", 0}}}}
            << '\n';
}

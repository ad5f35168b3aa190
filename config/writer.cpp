#include <yaml-cpp/yaml.h>

#include <nlohmann/json.hpp>

#include "config/codec_mesh.h"
#include "config/fields.h"
#include "config/scenario.h"

namespace wafersim::config {
namespace {

/// Writes a spec as a section of a tree; the visitor of `fields` for writing.
class Writer {
 public:
  template <class T>
  void operator()(const Key& key, T& value) {
    if constexpr (Leaf<T>) {
      ConfigNode node = Codec<T>::write(key, value);
      if (!node.is_null()) section_.add_member(key.name, std::move(node));
    } else {
      write_section(key, value);
    }
  }

  template <class T>
  void alternative(const Key& key, T& value, bool chosen) {
    if (chosen) (*this)(key, value);
  }

  void source(const Key&) {}

  ConfigNode take() { return std::move(section_); }

 private:
  template <class T>
  void write_section(const Key& key, T& value) {
    Writer inner;
    fields(inner, value);
    section_.add_member(key.name, inner.take());
  }

  template <class T>
  void write_section(const Key& key, std::optional<T>& value) {
    if (value) {
      write_section(key, *value);
    } else {
      section_.add_member(key.name, ConfigNode::make_text(key.absent));
    }
  }

  ConfigNode section_ = ConfigNode::make_map();
};

ConfigNode to_tree(Scenario scenario) {
  Writer writer;
  fields(writer, scenario);
  return writer.take();
}

void emit_yaml(const ConfigNode& node, YAML::Emitter& out) {
  if (node.is_map()) {
    out << YAML::BeginMap;
    for (const ConfigNode& member : node.children) {
      out << YAML::Key << member.key << YAML::Value;
      emit_yaml(member, out);
    }
    out << YAML::EndMap;
  } else if (node.is_list()) {
    out << YAML::Flow << YAML::BeginSeq;
    for (const ConfigNode& item : node.children) emit_yaml(item, out);
    out << YAML::EndSeq;
  } else {
    out << node.text;
  }
}

nlohmann::ordered_json json_of(const ConfigNode& node) {
  if (node.is_map()) {
    auto object = nlohmann::ordered_json::object();
    for (const ConfigNode& member : node.children) object[member.key] = json_of(member);
    return object;
  }
  if (node.is_list()) {
    auto array = nlohmann::ordered_json::array();
    for (const ConfigNode& item : node.children) array.push_back(json_of(item));
    return array;
  }
  if (node.literal) return nlohmann::ordered_json::parse(node.text);
  return node.text;
}

}  // namespace

std::string to_yaml(const Scenario& scenario) {
  YAML::Emitter out;
  emit_yaml(to_tree(scenario), out);
  return std::string(out.c_str()) + "\n";
}

std::string to_json(const Scenario& scenario) { return json_of(to_tree(scenario)).dump(2); }

namespace {

/// Without a plan and all that belongs to it; of the workloads without one only `section`.
std::string json_of_workload(const Scenario& scenario, const std::string& section) {
  nlohmann::ordered_json json = json_of(to_tree(scenario));
  for (const char* each : {"model", "training", "plan", "placement"}) json.erase(each);
  for (const char* each : {"traffic", "collective", "kernel"}) {
    if (section != each) json.erase(each);
  }
  return json.dump(2);
}

}  // namespace

std::string traffic_json(const Scenario& scenario) { return json_of_workload(scenario, "traffic"); }
std::string collective_json(const Scenario& scenario) { return json_of_workload(scenario, "collective"); }
std::string kernel_json(const Scenario& scenario) { return json_of_workload(scenario, "kernel"); }

std::string pattern_name(workloads::SyntheticPattern pattern) { return word_of(pattern); }
std::string word(models::Fidelity fidelity) { return word_of(fidelity); }
std::string word(workloads::StreamedKind kind) { return word_of(kind); }
std::string word(workloads::StreamedAlgorithm algorithm) { return word_of(algorithm); }
std::string word(workloads::StreamRelay relay) { return word_of(relay); }

}  // namespace wafersim::config

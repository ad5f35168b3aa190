#include "config/node.h"

#include <algorithm>
#include <utility>
#include <array>

namespace wafersim::config {
namespace {

struct Alternatives {
  const char* section;
  const char* one;
  const char* other;
};
constexpr std::array kAlternatives = {Alternatives{"wafer.compute.matrix", "peak", "arrays"},
                                      Alternatives{"model", "preset", "huggingface"}};

void drop_alternatives(ConfigNode& base, const ConfigNode& over, const std::string& path) {
  for (const Alternatives& pair : kAlternatives) {
    if (path != pair.section) continue;
    if (over.find(pair.one) != nullptr) base.erase(pair.other);
    if (over.find(pair.other) != nullptr) base.erase(pair.one);
  }
}

}  // namespace

const ConfigNode* ConfigNode::find(const std::string& name) const {
  if (kind != Kind::map) return nullptr;
  const auto found =
      std::find_if(children.begin(), children.end(), [&](const ConfigNode& c) { return c.key == name; });
  return found == children.end() ? nullptr : &*found;
}

ConfigNode* ConfigNode::find(const std::string& name) {
  return const_cast<ConfigNode*>(static_cast<const ConfigNode*>(this)->find(name));
}

const ConfigNode* ConfigNode::find_path(const std::string& path) const {
  const ConfigNode* node = this;
  for (const std::string& name : split_path(path)) {
    node = node->find(name);
    if (node == nullptr) return nullptr;
  }
  return node;
}

ConfigNode* ConfigNode::find_path(const std::string& path) {
  return const_cast<ConfigNode*>(std::as_const(*this).find_path(path));
}

Location ConfigNode::locate(const std::string& path) const {
  const ConfigNode* node = this;
  for (const std::string& name : split_path(path)) {
    const ConfigNode* next = node->find(name);
    if (next == nullptr) return node->heading();
    node = next;
  }
  return node->where;
}

void ConfigNode::add_member(std::string name, ConfigNode value) {
  kind = Kind::map;
  value.key = std::move(name);
  children.push_back(std::move(value));
}

void ConfigNode::erase(const std::string& name) {
  std::erase_if(children, [&](const ConfigNode& child) { return child.key == name; });
}

ConfigNode ConfigNode::make_text(std::string text) {
  ConfigNode node;
  node.kind = Kind::scalar;
  node.text = std::move(text);
  return node;
}

ConfigNode ConfigNode::make_literal(std::string text) {
  ConfigNode node = make_text(std::move(text));
  node.literal = true;
  return node;
}

ConfigNode ConfigNode::make_map() {
  ConfigNode node;
  node.kind = Kind::map;
  return node;
}

std::string join_path(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + "." + key;
}

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (true) {
    const std::size_t dot = path.find('.', begin);
    names.push_back(path.substr(begin, dot - begin));
    if (dot == std::string::npos) return names;
    begin = dot + 1;
  }
}

void merge(ConfigNode& base, const ConfigNode& over, const std::string& path) {
  if (base.is_map() && over.is_null()) return;
  if (!base.is_map() || !over.is_map()) {
    base = over;
    return;
  }
  drop_alternatives(base, over, path);
  base.where = over.where;
  base.key_where = over.key_where;
  for (const ConfigNode& member : over.children) {
    ConfigNode* existing = base.find(member.key);
    if (existing == nullptr) {
      base.children.push_back(member);
    } else {
      merge(*existing, member, join_path(path, member.key));
    }
  }
}

}  // namespace wafersim::config

#include "config/keys.h"

#include <fmt/format.h>

#include "config/codec_mesh.h"
#include "config/fields.h"

namespace wafersim::config {
namespace {

std::string text_of(const ConfigNode& node) {
  if (!node.is_list()) return node.text;
  std::vector<std::string> items;
  for (const ConfigNode& item : node.children) items.push_back(item.text);
  return "[" + join(items) + "]";
}

/// Lists the keys of default specs; the visitor of `fields` for the reference.
class KeyLister {
 public:
  KeyLister(std::string path, std::vector<KeyInfo>& keys) : path_(std::move(path)), keys_(keys) {}

  template <class T>
  void operator()(const Key& key, T& value) {
    if constexpr (Leaf<T>) {
      add(key, Codec<T>::type(key), text_of(Codec<T>::write(key, value)), false);
    } else {
      list_section(key, value);
    }
  }

  template <class T>
  void alternative(const Key& key, T& value, bool /*chosen*/) {
    (*this)(key, value);
  }

  void source(const Key& key) { add(key, key.is_path ? "file" : "name or file", "none", false); }

 private:
  template <class T>
  void list_section(const Key& key, T& value) {
    add(key, "section", "", true);
    KeyLister inner(join_path(path_, key.name), keys_);
    fields(inner, value);
  }

  template <class T>
  void list_section(const Key& key, std::optional<T>&) {
    add(key, "section or " + key.absent, key.absent, true);
    T value{};
    KeyLister inner(join_path(path_, key.name), keys_);
    fields(inner, value);
  }

  void add(const Key& key, std::string type, std::string default_value, bool section) {
    if (!key.default_text.empty()) default_value = key.default_text;
    if (key.required) default_value = "required";
    keys_.push_back(
        {join_path(path_, key.name), std::move(type), std::move(default_value), key.doc, section, key.shorthand});
  }

  std::string path_;
  std::vector<KeyInfo>& keys_;
};

}  // namespace

std::vector<KeyInfo> key_reference() {
  std::vector<KeyInfo> keys;
  KeyLister lister("", keys);
  Scenario defaults;
  fields(lister, defaults);
  return keys;
}

std::string reference_row(const KeyInfo& key) {
  return fmt::format("| `{}` | {} | {} | {} |", key.path, key.type, key.default_value, key.doc);
}

}  // namespace wafersim::config

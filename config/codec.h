#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/rational.h"
#include "base/text.h"
#include "config/codec_quantity.h"
#include "config/key.h"
#include "config/node.h"
#include "config/problems.h"
#include "config/words.h"

namespace wafersim::config {

/// Where a value is being read and to whom its faults go.
struct ValueContext {
  const Key& key;
  std::string path;
  Problems& problems;

  /// Reports a fault of the value (with the word that means "no value", where there is one). Returns false.
  bool fail(const Location& where, const std::string& message) const;
  /// The same value's item `index`.
  ValueContext item(std::size_t index) const;
  /// False, with a report, unless `node` is a scalar with text.
  bool expect_scalar(const ConfigNode& node) const;
  bool expect_list(const ConfigNode& node) const;
  /// False, with a report that names the nearest word, unless `word` is one of `words`.
  bool expect_word(const ConfigNode& node, const std::string& word,
                   const std::vector<std::string>& words) const;
};

/// How a leaf value of type T is read from a node (false and a report when it is wrong, `out` then
/// unchanged), written to one (null = left out), and named in the reference.
template <class T>
struct Codec;

template <class T>
concept Leaf = requires(const Key& key) {
  { Codec<T>::type(key) } -> std::same_as<std::string>;
};

/// Parses a whole number that fills the text. Returns the error of std::from_chars, or invalid_argument for a
/// rest.
std::errc parse_integer(const std::string& text, std::int64_t& out);

/// Reads a whole number within the range of the key.
bool read_whole(const ConfigNode& node, const ValueContext& context, std::int64_t& out);
std::string whole_type(const Key& key);

template <class T>
std::string too_large(const std::string& text) {
  return "'" + text + "' is out of range; valid: " + std::to_string(std::numeric_limits<T>::max()) +
         " or less";
}

/// Whole numbers, within Key::min and Key::max.
template <class T>
requires(std::integral<T> && !std::same_as<T, bool>) struct Codec<T> {
  static bool read(const ConfigNode& node, const ValueContext& context, T& out) {
    std::int64_t value = 0;
    if (!read_whole(node, context, value)) return false;
    if (!std::in_range<T>(value)) return context.fail(node.where, too_large<T>(node.text));
    out = static_cast<T>(value);
    return true;
  }
  static ConfigNode write(const Key&, const T& value) {
    return ConfigNode::make_literal(std::to_string(value));
  }
  static std::string type(const Key& key) { return whole_type(key); }
};

template <>
struct Codec<bool> {
  static bool read(const ConfigNode& node, const ValueContext& context, bool& out);
  static ConfigNode write(const Key&, bool value) {
    return ConfigNode::make_literal(value ? "true" : "false");
  }
  static std::string type(const Key&) { return "true, false"; }
};

/// Decimal numbers without a unit, exact: "0.1". Within Key::min (0 unless given) and Key::max; above 0 with Key::positive.
template <>
struct Codec<Rational> {
  static bool read(const ConfigNode& node, const ValueContext& context, Rational& out);
  static ConfigNode write(const Key&, const Rational& value) { return ConfigNode::make_literal(value.to_string()); }
  static std::string type(const Key& key);
};

/// Texts; one of Key::words when there are any; a file name when Key::is_path (then made absolute).
template <>
struct Codec<std::string> {
  static bool read(const ConfigNode& node, const ValueContext& context, std::string& out);
  static ConfigNode write(const Key& key, const std::string& value);
  static std::string type(const Key& key);
};

/// Values with a unit.
template <Quantity T>
struct Codec<T> {
  static bool read(const ConfigNode& node, const ValueContext& context, T& out) {
    if (!context.expect_scalar(node)) return false;
    T value;
    std::string error;
    if (!parse_quantity(node.text, value, error)) return context.fail(node.where, error);
    const Rational size = magnitude(value);
    const bool in_range = context.key.positive ? size > Rational(0) : size >= Rational(0);
    if (!in_range) {
      const char* rule = context.key.positive ? "must be more than 0" : "must not be negative";
      return context.fail(node.where, "'" + node.text + "' is out of range; " + rule);
    }
    out = value;
    return true;
  }
  static ConfigNode write(const Key&, const T& value) { return ConfigNode::make_text(to_string(value)); }
  static std::string type(const Key&) { return quantity_name(T{}); }
};

/// Words of an enumeration.
template <Worded T>
struct Codec<T> {
  static bool read(const ConfigNode& node, const ValueContext& context, T& out) {
    return context.expect_scalar(node) && context.expect_word(node, node.text, all_words<T>()) &&
           parse_word(node.text, out);
  }
  static ConfigNode write(const Key&, const T& value) { return ConfigNode::make_text(word_of(value)); }
  static std::string type(const Key&) { return join(all_words<T>()); }
};

/// Values that may be missing: Key::absent is the word for it.
template <Leaf T>
struct Codec<std::optional<T>> {
  static bool read(const ConfigNode& node, const ValueContext& context, std::optional<T>& out) {
    if (node.is_scalar() && !context.key.absent.empty() && node.text == context.key.absent) {
      out.reset();
      return true;
    }
    T value{};
    if (!Codec<T>::read(node, context, value)) return false;
    out = value;
    return true;
  }
  static ConfigNode write(const Key& key, const std::optional<T>& value) {
    if (value) return Codec<T>::write(key, *value);
    return key.absent.empty() ? ConfigNode{} : ConfigNode::make_text(key.absent);
  }
  static std::string type(const Key& key) {
    const std::string inner = Codec<T>::type(key);
    return key.absent.empty() ? inner : inner + " or " + key.absent;
  }
};

/// Lists, as in [a, b].
template <Leaf T>
struct Codec<std::vector<T>> {
  static bool read(const ConfigNode& node, const ValueContext& context, std::vector<T>& out) {
    if (!context.expect_list(node)) return false;
    std::vector<T> values;
    bool ok = true;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      T value{};
      ok = Codec<T>::read(node.children[i], context.item(i), value) && ok;
      values.push_back(value);
    }
    if (ok) out = std::move(values);
    return ok;
  }
  static ConfigNode write(const Key& key, const std::vector<T>& values) {
    ConfigNode list;
    list.kind = ConfigNode::Kind::list;
    for (const T& value : values) list.children.push_back(Codec<T>::write(key, value));
    return list;
  }
  static std::string type(const Key& key) { return "list of " + Codec<T>::type(key); }
};

}  // namespace wafersim::config

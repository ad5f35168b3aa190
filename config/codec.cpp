#include "config/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace wafersim::config {
namespace {

std::string range_rule(const Key& key) {
  if (key.min && key.max)
    return fmt::format("{}{}{}", *key.min, *key.max - *key.min == 1 ? ", " : " to ", *key.max);
  if (key.min) return fmt::format("{} or more", *key.min);
  if (key.max) return fmt::format("{} or less", *key.max);
  return {};
}

/// The directory against which a file name is resolved: that of the file that names it, or the working
/// directory for an override.
std::filesystem::path directory_of(const Location& where) {
  if (where.line == 0) return std::filesystem::current_path();
  return std::filesystem::absolute(where.file).parent_path();
}

}  // namespace

std::errc parse_integer(const std::string& text, std::int64_t& out) {
  const char* begin = text.data();
  const char* end = begin + text.size();
  if (text.size() > 1 && *begin == '+' && text[1] != '-') ++begin;
  const auto [rest, error] = std::from_chars(begin, end, out);
  if (error == std::errc{} && rest != end) return std::errc::invalid_argument;
  return error;
}

bool ValueContext::fail(const Location& where, const std::string& message) const {
  problems.add(where, path,
               key.absent.empty() ? message : fmt::format("{}; or the word '{}'", message, key.absent));
  return false;
}

ValueContext ValueContext::item(std::size_t index) const {
  return {key, fmt::format("{}[{}]", path, index), problems};
}

bool ValueContext::expect_scalar(const ConfigNode& node) const {
  if (node.is_null() || (node.is_scalar() && node.text.empty())) return fail(node.where, "has no value");
  if (!node.is_scalar())
    return fail(node.where, fmt::format("must be a single value, not a {}", node.is_map() ? "map" : "list"));
  return true;
}

bool ValueContext::expect_list(const ConfigNode& node) const {
  return node.is_list() || fail(node.where, "must be a list, as in [a, b]");
}

bool ValueContext::expect_word(const ConfigNode& node, const std::string& word,
                               const std::vector<std::string>& words) const {
  if (std::find(words.begin(), words.end(), word) != words.end()) return true;
  const std::string near = nearest(word, words);
  const std::string hint = near.empty() ? "" : fmt::format("; did you mean '{}'?", near);
  return fail(node.where, fmt::format("unknown word '{}'{}{} valid: {}", word, hint, near.empty() ? ";" : "",
                                      join(words)));
}

bool read_whole(const ConfigNode& node, const ValueContext& context, std::int64_t& out) {
  if (!context.expect_scalar(node)) return false;
  const Key& key = context.key;
  std::int64_t value = 0;
  const std::errc error = parse_integer(node.text, value);
  if (error == std::errc::result_out_of_range)
    return context.fail(node.where, too_large<std::int64_t>(node.text));
  if (error != std::errc{})
    return context.fail(node.where, fmt::format("'{}' is not a whole number", node.text));
  if ((key.min && value < *key.min) || (key.max && value > *key.max)) {
    return context.fail(node.where, fmt::format("'{}' is out of range; valid: {}", value, range_rule(key)));
  }
  out = value;
  return true;
}

std::string whole_type(const Key& key) {
  const std::string rule = range_rule(key);
  return rule.empty() ? "whole number" : "whole number, " + rule;
}

bool Codec<bool>::read(const ConfigNode& node, const ValueContext& context, bool& out) {
  if (!context.expect_scalar(node)) return false;
  if (node.text != "true" && node.text != "false") {
    return context.fail(node.where, fmt::format("'{}' is neither true nor false", node.text));
  }
  out = node.text == "true";
  return true;
}

namespace {

Rational least(const Key& key) { return Rational(key.min.value_or(0)); }

std::string range(const Key& key) {
  const std::string low = key.positive ? "above 0" : fmt::format("{} or more", least(key).to_string());
  if (!key.max) return low;
  return key.positive ? fmt::format("above 0, at most {}", *key.max)
                      : fmt::format("{} to {}", least(key).to_string(), *key.max);
}

}  // namespace

bool Codec<Rational>::read(const ConfigNode& node, const ValueContext& context, Rational& out) {
  if (!context.expect_scalar(node)) return false;
  Rational value;
  if (!Rational::parse_decimal(node.text, value)) {
    return context.fail(node.where, fmt::format("'{}' is not a number; valid: {}", node.text, range(context.key)));
  }
  const Key& key = context.key;
  const bool fits = (key.positive ? value > Rational(0) : value >= least(key)) && (!key.max || value <= Rational(*key.max)) &&
                    value >= least(key);
  if (!fits) return context.fail(node.where, fmt::format("'{}' is out of range; valid: {}", node.text, range(key)));
  out = value;
  return true;
}

std::string Codec<Rational>::type(const Key& key) { return "number, " + range(key); }

bool Codec<std::string>::read(const ConfigNode& node, const ValueContext& context, std::string& out) {
  if (!context.expect_scalar(node)) return false;
  const Key& key = context.key;
  if (!key.absent.empty() && node.text == key.absent) {
    out.clear();
    return true;
  }
  if (!key.words.empty() && !context.expect_word(node, node.text, key.words)) return false;
  out = key.is_path ? (directory_of(node.where) / node.text).lexically_normal().string() : node.text;
  return true;
}

ConfigNode Codec<std::string>::write(const Key& key, const std::string& value) {
  if (value.empty() && key.absent.empty()) return {};
  return ConfigNode::make_text(value.empty() ? key.absent : value);
}

std::string Codec<std::string>::type(const Key& key) {
  const std::string kind = !key.words.empty() ? join(key.words) : key.is_path ? "file" : "text";
  return key.absent.empty() ? kind : kind + " or " + key.absent;
}

}  // namespace wafersim::config

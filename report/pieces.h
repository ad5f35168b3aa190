#pragma once

#include <fmt/format.h>

#include <charconv>
#include <concepts>
#include <cstring>
#include <limits>
#include <string_view>
#include <type_traits>

namespace wafersim::report {

template <class T>
concept Digits = std::integral<T> && !std::same_as<T, char> && !std::same_as<T, bool>;

template <class T>
concept Piece = Digits<T> || std::convertible_to<const T&, std::string_view>;

namespace pieces {

template <Digits T>
T prepared(const T& number) {
  return number;
}
/// An array of characters is a literal, whose length the compiler knows.
template <std::size_t Size>
std::string_view prepared(const char (&text)[Size]) {
  return {text, Size - 1};
}
template <class T>
  requires std::convertible_to<const T&, std::string_view>
std::string_view prepared(const T& text) {
  return text;
}

template <Digits T>
constexpr std::size_t most_characters(T /*number*/) {
  return std::numeric_limits<T>::digits10 + 2;  // a digit more, a sign
}
inline std::size_t most_characters(std::string_view text) { return text.size(); }

template <Digits T>
char* put(char* to, T number) {
  return std::to_chars(to, to + most_characters(number), number).ptr;
}
inline char* put(char* to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  return to + text.size();
}

template <class... Prepared>
void append(fmt::memory_buffer& text, Prepared... pieces) {
  text.reserve(text.size() + (most_characters(pieces) + ...));
  char* to = text.data() + text.size();
  ((to = put(to, pieces)), ...);
  text.resize(static_cast<std::size_t>(to - text.data()));
}

}  // namespace pieces

/// Appends texts as they are and integers in decimal. For files of very many rows, where parsing a format costs more than the
/// digits.
template <Piece... Pieces>
void append_pieces(fmt::memory_buffer& text, const Pieces&... pieces) {
  pieces::append(text, pieces::prepared(pieces)...);
}

}  // namespace wafersim::report

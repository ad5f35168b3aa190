#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace wafersim::report {

/// What surrounds DEFLATE data (RFC 1951).
enum class Wrapping : std::uint8_t {
  gzip,  ///< RFC 1952; no name or time is stored
  zlib,  ///< RFC 1950
};

/// Compresses a stream. One text in the same pieces gives the same bytes on the same kind of processor.
class Deflate {
 public:
  /// Takes what has been compressed.
  using Sink = std::function<void(std::string_view)>;

  explicit Deflate(Wrapping wrapping);
  ~Deflate();
  Deflate(const Deflate&) = delete;
  Deflate& operator=(const Deflate&) = delete;

  /// Large pieces cost less than many small ones. `last`: nothing follows; all is handed to the sink, what surrounds it with it.
  void write(std::string_view text, bool last, const Sink& sink);

 private:
  struct Stream;
  std::unique_ptr<Stream> stream_;
};

/// The whole of `text` in the zlib format.
std::vector<std::uint8_t> deflated(std::string_view text);

}  // namespace wafersim::report

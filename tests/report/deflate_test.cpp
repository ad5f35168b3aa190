#include "report/deflate.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

/// What ISA-L has compressed zlib takes apart.
namespace wafersim::report {
namespace {

/// All of a stream of either wrapping, of `size` bytes when it is whole.
std::string inflated(std::string_view packed, std::size_t size) {
  constexpr int kEither = 32;
  z_stream zlib{};
  EXPECT_EQ(inflateInit2(&zlib, MAX_WBITS + kEither), Z_OK);
  std::string text(size + 1, '\0');
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  zlib.avail_in = static_cast<uInt>(packed.size());
  zlib.next_out = reinterpret_cast<Bytef*>(text.data());
  zlib.avail_out = static_cast<uInt>(text.size());
  EXPECT_EQ(inflate(&zlib, Z_FINISH), Z_STREAM_END) << "the stream has no end";
  EXPECT_EQ(zlib.avail_in, 0U) << "something follows the end";
  text.resize(zlib.total_out);
  inflateEnd(&zlib);
  return text;
}

std::vector<std::string> texts() {
  std::string repeats, random;
  for (int i = 0; i < 40'000; ++i) repeats += std::to_string(i * i % 977) + "</script>";
  RandomStream bytes(7, "deflate");
  for (int i = 0; i < 300'000; ++i) random += static_cast<char>(bytes.below(256));
  return {"", "a", repeats, random};
}

TEST(Deflate, TextsComeBackHoweverTheyAreCut) {
  for (const std::string& text : texts()) {
    for (const Wrapping wrapping : {Wrapping::gzip, Wrapping::zlib}) {
      for (const std::size_t piece : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 16, text.size() + 1}) {
        Deflate deflate(wrapping);
        std::string packed;
        const auto keep = [&packed](std::string_view bytes) { packed += bytes; };
        for (std::size_t at = 0; at < text.size(); at += piece) {
          deflate.write(std::string_view(text).substr(at, piece), false, keep);
        }
        deflate.write({}, true, keep);
        EXPECT_EQ(packed.starts_with("\x1f\x8b"), wrapping == Wrapping::gzip);
        EXPECT_EQ(inflated(packed, text.size()), text) << text.size() << " bytes by " << piece;
      }
    }
  }
}

TEST(Deflate, AtOnceAndSmall) {
  for (const std::string& text : texts()) {
    const std::vector<std::uint8_t> packed = deflated(text);
    EXPECT_EQ(inflated({reinterpret_cast<const char*>(packed.data()), packed.size()}, text.size()), text);
    EXPECT_LT(packed.size(), text.size() + text.size() / 1000 + 64);
    EXPECT_TRUE(text.find("</script>") == std::string::npos || packed.size() < text.size() / 5);
  }
}

TEST(Deflate, NothingFollowsTheEnd) {
  Deflate deflate(Wrapping::gzip);
  const auto drop = [](std::string_view) {};
  deflate.write("text", true, drop);
  EXPECT_THROW(deflate.write("more", false, drop), InternalError);
}

}  // namespace
}  // namespace wafersim::report

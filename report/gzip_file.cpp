#include "report/gzip_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/error.h"

namespace wafersim::report {
namespace {

constexpr int kLevel = 3;  ///< a simulation should not wait for its log
constexpr int kGzip = 16;  ///< added to the window's bits: a gzip header, not one of zlib
constexpr int kMemoryLevel = 8;

}  // namespace

struct GzipFile::Stream {
  z_stream zlib{};
  std::array<char, std::size_t{1} << 16> out;
};

GzipFile::GzipFile(const std::filesystem::path& path) : file_(path), stream_(std::make_unique<Stream>()) {
  const int status = deflateInit2(&stream_->zlib, kLevel, Z_DEFLATED, MAX_WBITS + kGzip, kMemoryLevel, Z_DEFAULT_STRATEGY);
  if (status != Z_OK) throw IoError("cannot compress " + path.string() + ": no memory for zlib");
}

GzipFile::~GzipFile() { deflateEnd(&stream_->zlib); }

void GzipFile::write(std::string_view text) {
  constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
  for (; !text.empty(); text.remove_prefix(std::min(kMost, text.size()))) deflate(text.substr(0, kMost), Z_NO_FLUSH);
}

void GzipFile::commit() {
  deflate({}, Z_FINISH);
  file_.commit();
}

void GzipFile::deflate(std::string_view text, int flush) {
  z_stream& zlib = stream_->zlib;
  // zlib does not write to its input.
  zlib.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  zlib.avail_in = static_cast<uInt>(text.size());
  do {
    zlib.next_out = reinterpret_cast<Bytef*>(stream_->out.data());
    zlib.avail_out = static_cast<uInt>(stream_->out.size());
    const int status = ::deflate(&zlib, flush);
    require_invariant(status != Z_STREAM_ERROR, "a compressed file was written to after it was committed");
    file_.write({stream_->out.data(), stream_->out.size() - zlib.avail_out});
  } while (zlib.avail_out == 0);
}

}  // namespace wafersim::report

#include "report/gzip_file.h"

namespace wafersim::report {
namespace {

/// Compressed at once: many small pieces take twice as long.
constexpr std::size_t kPiece = std::size_t{1} << 16;

}  // namespace

GzipFile::GzipFile(const std::filesystem::path& path) : file_(path), deflate_(Wrapping::gzip) { text_.reserve(2 * kPiece); }

void GzipFile::write(std::string_view text) {
  text_ += text;
  if (text_.size() >= kPiece) compress(/*last=*/false);
}

void GzipFile::commit() {
  compress(/*last=*/true);
  file_.commit();
}

void GzipFile::compress(bool last) {
  deflate_.write(text_, last, [this](std::string_view bytes) { file_.write(bytes); });
  text_.clear();
}

}  // namespace wafersim::report

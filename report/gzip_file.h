#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "report/atomic_file.h"

namespace wafersim::report {

/// An AtomicFile in the gzip format (RFC 1952), compressed as it is written. The same text gives the same bytes: no name
/// or time is stored. Throws IoError.
class GzipFile {
 public:
  explicit GzipFile(const std::filesystem::path& path);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  void write(std::string_view text);
  void commit();

 private:
  struct Stream;
  void deflate(std::string_view text, int flush);

  AtomicFile file_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace wafersim::report

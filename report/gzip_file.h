#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "report/atomic_file.h"
#include "report/deflate.h"

namespace wafersim::report {

/// An AtomicFile in the gzip format, compressed as it is written. Throws IoError.
class GzipFile {
 public:
  explicit GzipFile(const std::filesystem::path& path);

  void write(std::string_view text);
  void commit();

 private:
  void compress(bool last);

  AtomicFile file_;
  Deflate deflate_;
  std::string text_;  ///< not compressed yet
};

}  // namespace wafersim::report

#pragma once

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

namespace wafersim::report {

/// A file that appears under its name only when it is complete: it is written under a temporary name in the
/// same directory and renamed by commit(). Without commit() nothing is left behind and an older file of that
/// name stays. Every failure is an IoError with the path and the reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view text);
  /// Closes the file and gives it its name.
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  std::FILE* file_ = nullptr;
  bool committed_ = false;
};

/// All of a file at once, as an AtomicFile.
void write_file(const std::filesystem::path& path, std::string_view text);

}  // namespace wafersim::report

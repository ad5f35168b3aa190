#include "report/atomic_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace wafersim::report {
namespace {

/// In the same directory, so that the rename stays within one file system; with the process, so that two runs
/// do not write into each other's file.
std::filesystem::path temporary_name(const std::filesystem::path& path) {
  return path.parent_path() / fmt::format(".{}.{}.tmp", path.filename().string(), ::getpid());
}

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  file_ = std::fopen(temporary_.c_str(), "wb");
  if (file_ == nullptr) fail("create");
}

AtomicFile::~AtomicFile() {
  if (file_ != nullptr) std::fclose(file_);
  if (!committed_) std::remove(temporary_.c_str());
}

void AtomicFile::write(std::string_view text) {
  require_invariant(file_ != nullptr, "a file was written to after it was committed");
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail("write");
}

void AtomicFile::commit() {
  require_invariant(file_ != nullptr, "a file was committed twice");
  const bool closed = std::fclose(file_) == 0;
  file_ = nullptr;
  if (!closed) fail("write");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename the finished file to");
  committed_ = true;
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void AtomicFile::fail(const char* action) const {
  throw IoError(fmt::format("cannot {} {}: {}", action, path_.string(), std::strerror(errno)));
}

}  // namespace wafersim::report

#include "report/checkpoint_file.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

#include "base/error.h"
#include "report/atomic_file.h"

namespace wafersim::report {
namespace {

constexpr std::string_view kMagic = "wafersim checkpoint\n";
/// Raised whenever the layout of the state changes.
constexpr std::uint32_t kStateFormat = 3;
constexpr std::size_t kVersionBytes = 64;

/// Numbers as this machine has them: a file from one of another byte order has another format number.
struct Header {
  std::uint32_t format = kStateFormat;
  std::uint32_t memory = 0;
  std::array<char, kVersionBytes> version{};
  std::array<std::uint64_t, 2> scenario{};
  std::array<std::uint64_t, 2> trace{};
  std::array<std::uint64_t, 2> content{};  ///< of the state
  std::uint64_t bytes = 0;                 ///< of the state
};
static_assert(std::is_trivially_copyable_v<Header>);

std::array<std::uint64_t, 2> hash_of(std::span<const char> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

Header header_of(const CheckpointOwner& owner, std::span<const char> state) {
  Header header;
  std::strncpy(header.version.data(), WAFERSIM_VERSION, kVersionBytes - 1);
  header.memory = owner.memory ? 1 : 0;
  header.scenario = hash_of(owner.scenario);
  header.trace = owner.trace;
  header.content = hash_of(state);
  header.bytes = state.size();
  return header;
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& reason) {
  throw Error(ExitStatus::scenario, fmt::format("cannot resume from {}: {}", path.string(), reason));
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const CheckpointOwner& owner, std::span<const char> state) {
  const Header header = header_of(owner, state);
  AtomicFile file(path);
  file.write(kMagic);
  file.write({reinterpret_cast<const char*>(&header), sizeof header});
  file.write({state.data(), state.size()});
  file.commit();
}

std::vector<char> read_checkpoint(const std::filesystem::path& path, const CheckpointOwner& owner) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw IoError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  std::vector<char> content{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) throw IoError(fmt::format("cannot read {}: {}", path.string(), std::strerror(errno)));
  const std::size_t start = kMagic.size() + sizeof(Header);
  if (content.size() < kMagic.size() || std::string_view(content.data(), kMagic.size()) != kMagic) {
    refuse(path, "it is no checkpoint of wafersim");
  }
  if (content.size() < start) refuse(path, "it is damaged: it ends within its header");
  Header header;
  std::memcpy(&header, content.data() + kMagic.size(), sizeof header);
  content.erase(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(start));
  const Header expected = header_of(owner, content);
  if (header.format != expected.format || header.version != expected.version) {
    header.version.back() = '\0';
    refuse(path, fmt::format("it was written by wafersim {} (state format {}), this is {} (state format {})",
                             header.version.data(), header.format, expected.version.data(), expected.format));
  }
  if (header.bytes != expected.bytes) {
    refuse(path, fmt::format("it is damaged: it holds {} B of state instead of {} B", expected.bytes, header.bytes));
  }
  if (header.content != expected.content) refuse(path, "it is damaged: its check sum is wrong");
  if (header.scenario != expected.scenario) refuse(path, "it belongs to another scenario");
  if (header.trace != expected.trace) refuse(path, "it belongs to another trace");
  if (header.memory != expected.memory) {
    refuse(path, header.memory != 0 ? "it was written with --memory; give it here, too"
                                    : "it was written without --memory");
  }
  return content;
}

void remove_checkpoint(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::remove(directory / kCheckpointFile, error);
  if (error) throw IoError(fmt::format("cannot remove {}: {}", (directory / kCheckpointFile).string(), error.message()));
}

}  // namespace wafersim::report

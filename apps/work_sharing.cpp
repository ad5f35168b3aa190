#include "apps/work_sharing.h"

#include <algorithm>
#include <thread>

#include "apps/interrupt.h"

namespace wafersim::apps {
namespace {

namespace fs = std::filesystem;

constexpr const char* kWork = ".work";

}  // namespace

std::size_t jobs_of_rank(std::size_t given, const Cluster& cluster) {
  if (given != 0) return given;
  return cluster.size() > 1 ? 1 : std::max(1U, std::thread::hardware_concurrency());
}

WorkSharing::~WorkSharing() {
  if (cluster_.rank() != 0 || InterruptGuard::interrupted()) return;
  for (int rank = 1; rank < cluster_.size(); ++rank) cluster_.send(rank, {.kind = Cluster::Letter::Kind::end, .outcome = {}});
  while (gone_ < cluster_.size() - 1 && !InterruptGuard::interrupted()) {
    const auto letter = cluster_.receive();
    if (!letter) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    } else if (letter->kind == Cluster::Letter::Kind::gone) {
      ++gone_;
    }
  }
}

void WorkSharing::read_letters(std::deque<std::uint64_t>& waiting, std::set<std::uint64_t>& elsewhere, const Record& record) {
  while (const auto letter = cluster_.receive()) {
    switch (letter->kind) {
      case Cluster::Letter::Kind::ready:
        free_.push_back(letter->rank);
        break;
      case Cluster::Letter::Kind::outcome:
        if (elsewhere.erase(letter->number) != 0) record(letter->rank, {letter->number, letter->outcome});
        break;
      case Cluster::Letter::Kind::gone:  // there was no `end`
        ++gone_;
        InterruptGuard::interrupt();
        break;
      case Cluster::Letter::Kind::piece:
      case Cluster::Letter::Kind::end:
        break;
    }
  }
  for (; !waiting.empty() && !free_.empty(); waiting.pop_front(), free_.pop_front()) {
    const std::uint64_t number = waiting.front();
    cluster_.send(free_.front(), {.kind = Cluster::Letter::Kind::piece,
                                  .number = number,
                                  .text = own_.hand_over(number),
                                  .outcome = {}});
    elsewhere.insert(number);
  }
}

bool WorkSharing::run(const std::vector<std::uint64_t>& numbers, const Record& record, const std::function<bool()>& stop) {
  std::deque<std::uint64_t> waiting(numbers.begin(), numbers.end());
  std::set<std::uint64_t> elsewhere;
  const auto stopped = [&] { return InterruptGuard::interrupted() || stop(); };
  while (!stopped() && (!waiting.empty() || own_.running() != 0 || !elsewhere.empty())) {
    while (!waiting.empty() && own_.running() < jobs_) {
      own_.start(waiting.front());
      waiting.pop_front();
    }
    read_letters(waiting, elsewhere, record);
    if (const auto ended = own_.wait()) record(cluster_.rank(), *ended);
  }
  if (waiting.empty() && own_.running() == 0 && elsewhere.empty() && !InterruptGuard::interrupted()) return true;
  own_.interrupt();
  return false;
}

bool WorkSharing::serve() {
  const auto ask = [this] { cluster_.send(0, {.kind = Cluster::Letter::Kind::ready, .outcome = {}}); };
  for (std::size_t i = 0; i < jobs_; ++i) ask();
  bool end = false;
  while (!end && !InterruptGuard::interrupted()) {
    while (const auto letter = cluster_.receive()) {
      end = letter->kind == Cluster::Letter::Kind::end;
      if (end) break;
      own_.take_over(letter->number, letter->text);
      own_.start(letter->number);
    }
    if (end) break;
    if (const auto ended = own_.wait()) {
      cluster_.send(0, {.kind = Cluster::Letter::Kind::outcome, .number = ended->number, .outcome = ended->outcome});
      ask();
    }
  }
  own_.interrupt();
  cluster_.send(0, {.kind = Cluster::Letter::Kind::gone, .outcome = {}});
  return end;
}

ExitStatus serve(WorkSharing& sharing) {
  // After an interrupt rank 0 still writes what there is, and then ends all.
  return sharing.serve() ? ExitStatus::done : ExitStatus::interrupted;
}

WorkFolder::WorkFolder(const fs::path& directory, int rank) : path_(directory / kWork / std::to_string(rank)) {}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  fs::remove(path_.parent_path(), ignored);  // of the last rank
}

const fs::path& WorkFolder::path() const {
  fs::create_directories(path_);
  return path_;
}

void WorkFolder::clear(const fs::path& directory) { fs::remove_all(directory / kWork); }

}  // namespace wafersim::apps

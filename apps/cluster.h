#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "report/study_database.h"

namespace wafersim::apps {

/// The copies of this program that mpirun has started, each with a rank from 0 on. What they tell each other is about pieces of
/// work: rank 0 hands them out.
class Cluster {
 public:
  struct Letter {
    enum class Kind {
      ready,    ///< to rank 0: there is room for a piece
      piece,    ///< from rank 0: do piece `number`
      end,      ///< from rank 0: there is none left, nor is what is being done still wanted
      outcome,  ///< to rank 0: of piece `number`
      gone      ///< to rank 0: the last letter, an answer to `end` or after an interrupt
    };
    Kind kind = Kind::ready;
    int rank = 0;  ///< of the sender
    std::uint64_t number = 0;
    std::string text{};  ///< what a piece is
    report::PointOutcome outcome;
  };

  /// Joins the others; a program that was started alone is rank 0 of 1. Throws Error (status 2) when mpirun has started several
  /// and this program was built without MPI.
  Cluster();
  /// Waits for the others, unless an exception ends this.
  ~Cluster();
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  int rank() const;
  int size() const;
  void send(int rank, const Letter& letter);
  /// A letter that has come; nothing when none has.
  std::optional<Letter> receive();
  /// Ends all ranks at once when there are several.
  void end_all(ExitStatus status);

 private:
  struct Membership;
  std::unique_ptr<Membership> membership_;  ///< null when alone
  int exceptions_;  ///< in flight when this was made
};

}  // namespace wafersim::apps

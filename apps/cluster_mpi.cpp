#include <boost/mpi.hpp>
#include <boost/serialization/string.hpp>
#include <cstdlib>
#include <exception>
#include <utility>

#include "apps/cluster.h"

namespace boost::serialization {

template <class Archive>
void serialize(Archive& archive, wafersim::apps::Cluster::Letter& letter, unsigned /*version*/) {
  archive & letter.kind & letter.rank & letter.number & letter.text;
  archive & letter.outcome.result & letter.outcome.exit_status & letter.outcome.message;
}

}  // namespace boost::serialization

namespace wafersim::apps {

struct Cluster::Membership {
  /// Predictions run on threads, which send no letters.
  boost::mpi::environment environment{boost::mpi::threading::funneled, /*abort_on_exception=*/false};
  boost::mpi::communicator world;
};

namespace {

constexpr int kLetters = 0;  ///< the tag of all

/// mpirun of Open MPI and of MPICH and those like it tell each process its rank. Without them MPI is left alone: it takes a
/// while to start.
bool started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr ||
         std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace

Cluster::Cluster() : exceptions_(std::uncaught_exceptions()) {
  if (started_by_mpirun()) membership_ = std::make_unique<Membership>();
}

Cluster::~Cluster() {
  // Leaving would wait for the others. mpirun ends them when this process has ended.
  if (std::uncaught_exceptions() > exceptions_) static_cast<void>(membership_.release());
}

int Cluster::rank() const { return membership_ ? membership_->world.rank() : 0; }
int Cluster::size() const { return membership_ ? membership_->world.size() : 1; }

void Cluster::send(int rank, const Letter& letter) { membership_->world.send(rank, kLetters, letter); }

std::optional<Cluster::Letter> Cluster::receive() {
  if (!membership_) return std::nullopt;
  const auto there = membership_->world.iprobe(boost::mpi::any_source, kLetters);
  if (!there) return std::nullopt;
  Letter letter;
  membership_->world.recv(there->source(), kLetters, letter);
  letter.rank = there->source();
  return letter;
}

void Cluster::end_all(ExitStatus status) {
  if (size() > 1) boost::mpi::environment::abort(static_cast<int>(status));
}

}  // namespace wafersim::apps

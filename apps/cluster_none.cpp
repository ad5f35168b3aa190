#include <cstdlib>
#include <string>

#include "apps/cluster.h"

namespace wafersim::apps {

struct Cluster::Membership {};

namespace {

/// How many processes mpirun of Open MPI, or of MPICH and those like it, says that it has started.
int started_processes() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const char* text = std::getenv(name)) return std::atoi(text);
  }
  return 1;
}

}  // namespace

Cluster::Cluster() : exceptions_(0) {
  if (started_processes() <= 1) return;
  throw Error(ExitStatus::scenario,
              "mpirun has started several processes, and this wafersim was built without MPI; valid: a build with "
              "libboost-mpi-dev (WAFERSIM_MPI=ON), or --shard for a sweep");
}

Cluster::~Cluster() = default;

int Cluster::rank() const { return 0; }
int Cluster::size() const { return 1; }
void Cluster::send(int /*rank*/, const Letter& /*letter*/) {}
std::optional<Cluster::Letter> Cluster::receive() { return std::nullopt; }
void Cluster::end_all(ExitStatus /*status*/) {}

}  // namespace wafersim::apps

// The processes of a data-parallel run, found as torchrun says: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT
// of the environment (and TORCHELASTIC_USE_AGENT_STORE, where the launcher itself holds the store).
#pragma once

#include <memory>
#include <string>

#include "native/iql/iql.h"

namespace boq::tools {

/// Null where the environment names no other process. On the CPU values travel through the TCP store that the
/// processes meet at, on CUDA through NCCL. Throws BOQ_CONFIG_INVALID for an environment that contradicts
/// itself and for a device without a transport; std::exception of c10d where the others cannot be reached.
std::unique_ptr<iql::Collective> join_processes(const std::string& device);

/// This process' device: cuda becomes cuda:<LOCAL_RANK>.
std::string device_of_process(const std::string& device);

}  // namespace boq::tools
